package setup

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
)

func TestCheckTokenTTL(t *testing.T) {
	t.Parallel()
	for ttl, valid := range map[time.Duration]bool{
		0: true, time.Minute: true, 24 * time.Hour: true,
		-time.Hour: false, time.Second: false, time.Minute - 1: false, 24*time.Hour + 1: false,
	} {
		if err := CheckTokenTTL(ttl); (err == nil) != valid {
			t.Errorf("%s: %v", ttl, err)
		}
	}
}

// TestTokenTTL starts controllers one after the other on one method, and looks at its MaxTokenTTL.
func TestTokenTTL(t *testing.T) {
	t.Parallel()
	one, two := clusterOf(1, "one"), clusterOf(2, "two")
	const method = config.ServiceAuthMethod
	start := func(f *Observed, cluster string, ttl time.Duration, force bool) Plan {
		p := agent(t, Options{Cluster: cluster, TokenTTL: ttl, ForceTokenTTL: force}).compare(*f)
		*f = apply(t, *f, p)
		return p
	}
	starts := func(cluster string, ttls ...time.Duration) func(*Observed) {
		return func(f *Observed) {
			for _, ttl := range ttls {
				start(f, cluster, ttl, false)
			}
		}
	}
	set := func(ttl time.Duration) func(*Observed) {
		return func(f *Observed) { f.Methods[method].MaxTokenTTL = ttl }
	}
	described := func(f *Observed) { f.Methods[method].Description = "mine" }
	unrenewed := func(f *Observed) {
		f.Unrenewed = map[string][]string{method: {"a", "b"}, config.ClientAuthMethod: {"a", "b"}}
	}
	for name, c := range map[string]struct {
		before []func(*Observed)
		ttl    time.Duration
		force  bool
		want   time.Duration
		notice string
	}{
		"a new method":       {nil, time.Hour, false, time.Hour, ""},
		"a method of before": {[]func(*Observed){starts(one, 0)}, time.Hour, false, time.Hour, ""},
		"longer": {[]func(*Observed){starts(one, time.Hour)}, 2 * time.Hour, false, 2 * time.Hour,
			""},
		"shorter": {[]func(*Observed){starts(one, time.Hour)}, time.Minute, false, time.Minute,
			""},
		"removed": {[]func(*Observed){starts(one, time.Hour)}, 0, false, 0, ""},
		"removed, and asked for by another": {[]func(*Observed){starts(two, 3*time.Hour), starts(one, time.Hour)}, 0,
			false, 3 * time.Hour, ""},
		"asked for by another only": {[]func(*Observed){starts(two, time.Hour)}, 0, false, time.Hour, ""},
		"shorter than another's": {[]func(*Observed){starts(two, time.Hour)}, time.Minute, false, time.Minute,
			""},
		"longer than another's": {[]func(*Observed){starts(two, time.Minute)}, time.Hour, false, time.Minute,
			""},
		"an operator's value": {[]func(*Observed){starts(one, 0), set(5 * time.Hour)}, time.Hour, false, 5 * time.Hour,
			"5h0m0s: " + noticeTheirTTL},
		"an operator's value, not asked for": {[]func(*Observed){starts(one, 0), set(5 * time.Hour)}, 0, false,
			5 * time.Hour, ""},
		"an operator's value after ours": {[]func(*Observed){starts(one, time.Hour), set(5 * time.Hour)}, 0, false,
			5 * time.Hour, "5h0m0s: " + noticeTheirTTL},
		"an operator's 0 after ours": {[]func(*Observed){starts(one, time.Hour), set(0)}, time.Hour, false, time.Hour,
			""},
		"an operator's method": {[]func(*Observed){starts(one, 0), described}, time.Hour, false, 0,
			": " + noticeTheirMethod},
		"tokens that are not replaced": {[]func(*Observed){starts(one, 0), unrenewed}, time.Hour, false, 0,
			"2: a, b: " + noticeUnrenewed},
		"tokens that are not replaced, then off": {[]func(*Observed){starts(one, 0), unrenewed, starts(one, time.Hour)},
			0, false, 0, ""},
		"forced":        {[]func(*Observed){starts(one, 0), unrenewed}, time.Hour, true, time.Hour, ""},
		"forced before": {[]func(*Observed){starts(one, time.Hour), unrenewed}, time.Minute, false, time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := nothing(agent(t, Options{}))
			for _, before := range c.before {
				before(&f)
			}
			p := start(&f, one, c.ttl, c.force)
			if got := f.Methods[method].MaxTokenTTL; got != c.want {
				t.Errorf("MaxTokenTTL %s, want %s", got, c.want)
			}
			if got := strings.Join(notices(p), "\n"); got != c.notice {
				t.Errorf("notices %q, want %q", got, c.notice)
			}
			if again := steps(agent(t, Options{Cluster: one, TokenTTL: c.ttl, ForceTokenTTL: c.force}).compare(f)); len(
				again) > 0 {
				t.Errorf("a second start writes %q", again)
			}
		})
	}
}

// TestTokenTTLOfTheServer: Consul takes, changes and removes the value, which holds for the logins
// after it, and tokens that are not replaced hold it back.
func TestTokenTTLOfTheServer(t *testing.T) {
	l := newLab(t)
	fake := awstest.New(t, awstest.Role{
		Account: "000000000001", Path: "/consul-ecs/", Name: "web-role",
		Tags: map[string]string{config.TagServiceName: "web"},
	})
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())
	mustEnsure(t, l.setup(t, management(t), Options{}))
	setEndpoints(t, l.serviceMethod(), fake.URL)
	var log bytes.Buffer
	ensure := func(o Options) time.Duration {
		t.Helper()
		s := l.setup(t, management(t), o)
		s.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
		mustEnsure(t, s)
		m, _, err := management(t).ACL().AuthMethodRead(l.serviceMethod(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.MaxTokenTTL
	}
	renewed, dataplane, foreign := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	loginAs(t, l.serviceMethod(), renewed, "true")
	first := loginAs(t, l.serviceMethod(), dataplane, "false")
	second := loginAs(t, l.serviceMethod(), foreign, "")
	if got := ensure(Options{TokenTTL: time.Hour}); got != 0 {
		t.Errorf("MaxTokenTTL %s in spite of tokens that are not replaced", got)
	}
	if want := "2: " + dataplane + ", " + foreign; !strings.Contains(log.String(), want) ||
		strings.Contains(log.String(), renewed) {
		t.Errorf("log without %q:\n%s", want, &log)
	}
	for _, token := range []*api.ACLToken{first, second} {
		if _, err := management(t).ACL().TokenDelete(token.AccessorID, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, ttl := range []time.Duration{time.Hour, MaxTokenTTL, MinTokenTTL, 0} {
		if got := ensure(Options{TokenTTL: ttl}); got != ttl {
			t.Errorf("MaxTokenTTL %s, want %s", got, ttl)
		}
		token := loginAs(t, l.serviceMethod(), renewed, "true")
		var life time.Duration
		if token.ExpirationTime != nil {
			life = token.ExpirationTime.Sub(token.CreateTime)
		}
		if life != ttl {
			t.Errorf("a token lives %s, want %s", life, ttl)
		}
	}
}

// TestTokenTTLOfAPartition: the tokens that hold it back are in the namespaces that the method's
// logins name, also.
func TestTokenTTLOfAPartition(t *testing.T) {
	t.Parallel()
	e, c := newEnterprise(t)
	lists := map[string]string{
		"default": `[{"AccessorID":"a","AuthMethod":"` + config.ServiceAuthMethod + `"}]`,
		"web": `[{"AccessorID":"b","AuthMethod":"` + config.ServiceAuthMethod +
			`"},{"AccessorID":"c","AuthMethod":"other"},{"AccessorID":"d"}]`,
	}
	e.objects["/v1/namespace/web ecs/"] = json.RawMessage(`{"Name":"web"}`)
	for namespace, list := range lists {
		e.objects["/v1/acl/tokens ecs/"+namespace] = json.RawMessage(list)
	}
	state := agent(t, Options{Partition: "ecs", TokenTTL: time.Hour})
	s := &Setup{Client: c, Wanted: state, Log: hclog.NewNullLogger()}
	names, err := s.readUnrenewed(t.Context(), state.Methods[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b"}; !slices.Equal(names, want) {
		t.Errorf("tokens %q, want %q", names, want)
	}
}

// loginAs logs a task in and returns its token.
func loginAs(t *testing.T, method, task, renewed string) *api.ACLToken {
	t.Helper()
	signer, err := awsutil.NewSigner(t.Context(),
		awsutil.LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := signer.Bearer(t.Context(), awsutil.BearerOptions{IncludeEntity: true})
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]string{config.LoginMetaTaskID: task, config.LoginMetaCluster: cluster(1)}
	if renewed != "" {
		meta[config.LoginMetaRenewed] = renewed
	}
	c, _ := client(t, "anonymous", nil)
	token, err := consulutil.Login(t.Context(), c, consulutil.LoginParams{Method: method, Bearer: bearer, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := management(t).ACL().TokenRead(token.Accessor, nil)
	if err != nil {
		t.Fatal(err)
	}
	return read
}
