package images_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/registry"
)

// answer answers in place of a registry.
type answer = func(http.ResponseWriter, *http.Request) bool

// status answers everything but the first request with a status and a body.
func status(code int, body string) answer {
	return func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != "/v2/" {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
		return true
	}
}

func TestFailureNamesTheImageTheCauseAndTheCure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer answer
		want   string
	}{
		"forbidden": {
			status(403, `{"errors":[{"code":"DENIED","message":"no pull access"}]}`),
			"HOST refuses it (403 DENIED: no pull access): log in with `docker login HOST`, and check the name: many " +
				"registries refuse what does not exist",
		},
		"rate limit": {
			status(429, `{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit"}]}`),
			"HOST limits reads (429 TOOMANYREQUESTS: pull rate limit): log in with `docker login HOST` for a higher " +
				"limit, or repeat it later",
		},
		"no tag": {
			status(404, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown manifest"}]}`),
			"HOST has no such tag or digest (404 MANIFEST_UNKNOWN: unknown manifest): check the tag, or push the image",
		},
		"no repository": {
			status(404, `{"errors":[{"code":"NAME_UNKNOWN","message":"unknown name"}]}`),
			"HOST has no such repository (404 NAME_UNKNOWN: unknown name): check the name",
		},
		"server failed": {
			status(500, "<html>\nlong</html>"),
			"HOST failed (500 Internal Server Error): repeat it later, or read a copy by -from",
		},
		"damaged index": {
			typed(types.OCIImageIndex, "[1]"),
			"its index is damaged: json: cannot unmarshal array into Go value of type v1.IndexManifest",
		},
		"schema 1": {
			typed(types.DockerManifestSchema1Signed, `{"schemaVersion":1}`),
			"its manifest has the old schema 1, which ECS does not pull any more: push it again with a current Docker",
		},
		"no configuration": {
			typed(types.OCIManifestSchema1, `{"schemaVersion":2}`),
			`it is no container image: its configuration of type "" names no platform`,
		},
		"cut off": {
			cutOff, "HOST cannot be reached (unexpected EOF): check the network and the name, or read a copy by -from",
		},
		"too large": {
			typed(types.OCIManifestSchema1, strings.Repeat(" ", 5<<20)),
			"its configuration or manifest is larger than 4 MiB",
		},
		"redirect without TLS": {
			redirect("http://192.0.2.1:5000/web"),
			"HOST refers to 192.0.2.1:5000, which has no TLS: add it, or allow plain HTTP by -plain-http " +
				"192.0.2.1:5000",
		},
		"private token server": {
			challenge(`Bearer realm="http://10.0.0.1/token"`),
			`HOST names a token server that is refused (invalid realm in www-authenticate: realm host "10.0.0.1" is ` +
				`a private or link-local address): ` +
				"have it name its own host, or read a copy by -from",
		},
		"artifact": {
			typed("application/vnd.example+json", `{}`),
			`it is no container image: its manifest has the type "application/vnd.example+json"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry.Start(t)
			r.Answer(c.answer)
			_, failures := lockOf(t, options(), r.Host+"/web:1")
			want := "image " + r.Host + "/web:1: " + strings.ReplaceAll(c.want, "HOST", r.Host)
			if diff := cmp.Diff([]string{want}, failures); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// typed answers with a manifest of a type.
func typed(mediaType types.MediaType, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", string(mediaType))
		fmt.Fprint(w, body)
		return true
	}
}

// cutOff answers with the start of a manifest.
func cutOff(w http.ResponseWriter, req *http.Request) bool {
	if req.URL.Path != "/v2/" {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "{")
	}
	return true
}

// redirect answers everything but the first request with another address.
func redirect(address string) answer {
	return func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != "/v2/" {
			http.Redirect(w, req, address, http.StatusTemporaryRedirect)
		}
		return true
	}
}

// challenge demands a login.
func challenge(how string) answer {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", how)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func TestDigestThatCannotBeCheckedIsRefused(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	r.Answer(typed(types.OCIImageIndex, `{"schemaVersion":2,"manifests":[]}`))
	for digest, want := range map[string]string{
		"sha256:" + strings.Repeat("a", 64):  " is damaged: its digest is sha256:",
		"sha512:" + strings.Repeat("a", 128): " cannot be checked: want a digest by sha256",
	} {
		_, failures := lockOf(t, options(), r.Host+"/web@"+digest)
		if len(failures) != 1 || !strings.Contains(failures[0], "object "+digest+want) {
			t.Errorf("%q, want %s", failures, want)
		}
	}
}

func TestFailureOfAnImageThatNoTaskCanRun(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	chart := mutate.ConfigMediaType(empty.Image, "application/vnd.cncf.helm.config.v1+json")
	for path, c := range map[string]struct {
		image remote.Taggable
		want  string
	}{
		"windows:1": {
			registry.Image(t, "windows/amd64:10.0.20348.1", web()),
			"it is for windows/amd64 only: a task of the mesh needs linux/amd64 or linux/arm64",
		},
		"arm:1": {
			registry.Index(t, registry.Image(t, "linux/arm/v7", web()), registry.Image(t, "linux/s390x", web())),
			"it is for linux/arm/v7, linux/s390x only: a task of the mesh needs linux/amd64 or linux/arm64",
		},
		"empty:1": {registry.Index(t), "it has no image of any platform: push it again"},
		"chart:1": {
			chart,
			"it is no container image: its configuration of type \"application/vnd.cncf.helm.config.v1+json\" " +
				"names no platform",
		},
	} {
		reference := r.Push(t, path, c.image)
		_, failures := lockOf(t, options(), reference)
		if diff := cmp.Diff([]string{"image " + reference + ": " + c.want}, failures); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAllFailuresAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	good := r.Push(t, "web:1", registry.Image(t, "linux/amd64", web()))
	lock, failures := lockOf(t, options(), r.Host+"/web:2", good, "Not An Image", r.Host+"/web:3")
	if lock != nil {
		t.Error("a lock of some images was returned")
	}
	if len(failures) != 3 {
		t.Fatalf("%q", failures)
	}
	for i, part := range []string{"/web:2: ", "image Not An Image: it is no reference of an image", "/web:3: "} {
		if !strings.Contains(failures[i], part) {
			t.Errorf("line %d is %s, want %s", i, failures[i], part)
		}
	}
}

func TestSilentRegistryEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		req *http.Request) {
		<-req.Context().Done()
	}))
	t.Cleanup(silent.Close)
	host := strings.TrimPrefix(silent.URL, "http://")
	o := options()
	o.Timeout = 700 * time.Millisecond
	_, failures := lockOf(t, o, host+"/web:1")
	want := "image " + host + "/web:1: " + host +
		" did not answer within 700ms: check the network and the name, raise -timeout, or read a copy by -from"
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
}

// hanging is a keychain whose helper does not answer.
type hanging struct{ ended <-chan struct{} }

func (h hanging) Resolve(authn.Resource) (authn.Authenticator, error) {
	<-h.ended
	return authn.Anonymous, nil
}

// broken is a keychain whose helper fails.
type broken struct{}

func (broken) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("docker-credential-test: not found")
}

func TestCredentialHelperThatFailsOrHangsIsNamed(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	for _, c := range []struct {
		keychain authn.Keychain
		timeout  time.Duration
		want     string
	}{
		{hanging{t.Context().Done()}, 50 * time.Millisecond, "no answer within 50ms"},
		{broken{}, options().Timeout, "docker-credential-test: not found"},
	} {
		o := options()
		o.Timeout, o.Keychain = c.timeout, c.keychain
		_, failures := lockOf(t, o, r.Host+"/web:1")
		want := fmt.Sprintf("image %s/web:1: the credentials for %s cannot be read (%s): "+
			"check credsStore, credHelpers and auths in Docker's config.json", r.Host, r.Host, c.want)
		if diff := cmp.Diff([]string{want}, failures); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRegistryThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	host := testkit.ReservePort(t).String()
	_, failures := lockOf(t, options(), host+"/web:1")
	want := fmt.Sprintf("image %s/web:1: %s cannot be reached (dial tcp %s: connect: connection refused): "+
		"check the network and the name, or read a copy by -from", host, host, host)
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
}

func TestCertificateOfAnUnknownAuthorityIsNamed(t *testing.T) {
	t.Parallel()
	r, _ := registry.StartTLS(t)
	o := options()
	_, failures := lockOf(t, o, r.Host+"/web:1")
	want := fmt.Sprintf("image %s/web:1: %s has a certificate that is not trusted (x509: certificate signed by "+
		"unknown authority): name the authority's certificate in SSL_CERT_FILE, or correct the name", r.Host, r.Host)
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
}

// dialing answers for all hosts from one registry.
func dialing(host string) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, host)
	}}
}

func TestPlainHTTPToAnotherMachineMustBeAllowed(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	r.Push(t, "web:1", registry.Image(t, "linux/amd64", web()))
	o := options()
	o.Transport = dialing(r.Host)
	for _, host := range []string{"registry.example:5000", "10.0.0.7:5000"} {
		o.PlainHTTP = nil
		_, failures := lockOf(t, o, host+"/web:1")
		want := fmt.Sprintf("image %s/web:1: %s has no TLS: add it, or allow plain HTTP by -plain-http %s",
			host, host, host)
		if diff := cmp.Diff([]string{want}, failures); diff != "" {
			t.Error(diff)
		}
		o.PlainHTTP = []string{host}
		mustLock(t, o, host+"/web:1")
	}
}

func TestPauseThatARegistryDemandsIsMade(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		r := registry.Start(t)
		reference := r.Push(t, "web:1", registry.Image(t, "linux/amd64", web()))
		limited := make(chan time.Time, 1)
		var once sync.Once
		r.Answer(func(w http.ResponseWriter, req *http.Request) bool {
			first := false
			if req.URL.Path == "/v2/web/manifests/1" {
				once.Do(func() { first = true })
			}
			if first {
				limited <- time.Now()
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(code)
			}
			return first
		})
		mustLock(t, options(), reference)
		if took := time.Since(<-limited); took < 2*time.Second {
			t.Errorf("%d: repeated after %s", code, took)
		}
	}
}

func TestPauseThatIsLongerThanTheTimeoutIsNamed(t *testing.T) {
	t.Parallel()
	r := registry.Start(t)
	r.Answer(func(w http.ResponseWriter, req *http.Request) bool {
		w.Header().Set("Retry-After", "120")
		return status(429, `{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit"}]}`)(w, req)
	})
	_, failures := lockOf(t, options(), r.Host+"/web:1")
	want := fmt.Sprintf("image %s/web:1: %s demands a pause of 2m0s (429 TOOMANYREQUESTS: pull rate limit): "+
		"log in with `docker login %s` for a higher limit, raise -timeout, or repeat it then", r.Host, r.Host, r.Host)
	if diff := cmp.Diff([]string{want}, failures); diff != "" {
		t.Error(diff)
	}
	if requests := r.Requests(); len(requests) != 2 {
		t.Errorf("%v were read, want each once", requests)
	}
}
