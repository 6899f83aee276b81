package scenario

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const spiffe = "spiffe://domain.consul/ns/default/dc/dc1/svc/api"

// certificate returns a self-signed one with the given URI.
func certificate(t *testing.T, uri string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	if u, err := url.Parse(uri); err == nil && uri != "" {
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// server answers TLS with the certificate; its address is returned.
func server(t *testing.T, uri string, auth tls.ClientAuthType) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, uri)}, ClientAuth: auth}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, c := range []struct {
		name, address, want, problem string
	}{
		{"a mesh's listener", server(t, spiffe, tls.RequireAnyClientCert), spiffe, ""},
		{"no identity", server(t, "", tls.RequireAnyClientCert), "", ""},
		{"open to all", server(t, spiffe, tls.NoClientCert), spiffe, errServed.Error()},
		{"no TLS", plain.Listener.Addr().String(), "", "it does not speak TLS: "},
		{"nothing listens", "127.0.0.1:1", "", "refused"},
	} {
		got, err := peerIdentity(t.Context(), new(net.Dialer).DialContext, c.address)
		testkit.Equal(t, c.name+": got", got, c.want)
		testkit.ErrorContains(t, err, c.problem)
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.Error(w, "no such thing", http.StatusTeapot)
			return
		}
		w.Write([]byte(r.Method + " it is"))
	}))
	defer s.Close()
	dial := new(net.Dialer).DialContext
	for _, c := range []struct{ method, url, want, problem string }{
		{http.MethodGet, s.URL, "GET it is", ""},
		{http.MethodPost, s.URL, "POST it is", ""},
		{http.MethodGet, s.URL + "/none", "", "418 I'm a teapot"},
		{http.MethodGet, "http://127.0.0.1:1/", "", "refused"},
	} {
		got, err := send(t.Context(), dial, c.method, c.url)
		testkit.Equal(t, c.method+" "+c.url, got, c.want)
		testkit.ErrorContains(t, err, c.problem)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		answer     string
		has, lacks []string
		want       string
	}{
		{"hello from api", []string{"hello", "api"}, []string{"web"}, ""},
		{"hello from api", []string{"web"}, []string{"api"},
			"the answer lacks \"web\": hello from api\nthe answer has \"api\": api"},
		{long, []string{"y"}, nil, `the answer lacks "y": ` + long[:maxExcerpt]},
	} {
		got := ""
		if err := checkAnswer(c.answer, c.has, c.lacks); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
