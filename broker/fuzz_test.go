package broker

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/meshtask/consul-ecs/broker/receiver"
)

// fuzzed sends what a fuzzer made to a broker with one task, and checks the answer: it is
// no failure of the broker, errors have their form, and no grant is made except by 202.
func fuzzed(t *testing.T, send func(c *client) *httptest.ResponseRecorder) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, unsealed)
		synctest.Wait()
		c := w.task(1)
		w.listen("10.0.1.1:8080", nil)
		answer := send(c)
		w.stop()
		switch {
		case answer.Code == http.StatusAccepted:
		case answer.Code < 400 || answer.Code >= 500:
			t.Errorf("answer %d %s", answer.Code, answer.Body)
		default:
			e, err := receiver.DecodeRefusal(answer.Body.Bytes())
			if err != nil {
				t.Errorf("answer %d %s: %v", answer.Code, answer.Body, err)
			}
			if e.Code == "" || e.RequestID == "" {
				t.Errorf("answer %d %s has no code or no request_id", answer.Code, answer.Body)
			}
		}
		if made := len(w.backend.issued); made != 0 && answer.Code != http.StatusAccepted {
			t.Errorf("answer %d and %d grants", answer.Code, made)
		}
	})
}

func requestSeeds(f *testing.F) {
	nonce := base64.StdEncoding.EncodeToString(make([]byte, 16))
	f.Add([]byte(`{"cluster":"shop","task_arn":"` + taskARN(1) + `","nonce":"` + nonce + `"}`))
	f.Add([]byte(`{"cluster":"` + clusterARN + `","task_arn":"` + taskARN(1) + `","callback_port":8080,"nonce":"` +
		nonce + `","public_key":"AA=="}`))
	f.Add([]byte(`{"cluster":"shop","task_arn":"x","callback_port":80,"nonce":"` + nonce + `"}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
}

func FuzzTokenRequest(f *testing.F) {
	requestSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder {
			return c.call(http.MethodPost, "/v1/token", c.ip, body)
		})
	})
}

func FuzzRotateRequest(f *testing.F) {
	requestSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder {
			answer := c.call(http.MethodPost, "/v1/rotate", c.ip, body, "Authorization", "Bearer x")
			if answer.Code == http.StatusAccepted {
				t.Error("a task without a token rotated")
			}
			return answer
		})
	})
}

// FuzzBearer presents any credentials: without the token of a task nothing is rotated or
// revoked.
func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"", "Bearer ", "Bearer x", "bearer x", "Basic eDp5",
		"Bearer " + strings.Repeat("x", 20<<10)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authorization string) {
		for _, path := range []string{"/v1/rotate", "/v1/revoke"} {
			fuzzed(t, func(c *client) *httptest.ResponseRecorder {
				answer := c.call(http.MethodPost, path, c.ip, c.request(), "Authorization", authorization)
				if answer.Code != http.StatusUnauthorized {
					t.Errorf("%s with %q: answer %d", path, authorization, answer.Code)
				}
				return answer
			})
		}
	})
}

func FuzzUnwrapRequest(f *testing.F) {
	f.Add([]byte(`{"handle":"a","request_id":"b"}`))
	f.Add([]byte(`{"handle":"a"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder {
			answer := c.call(http.MethodPost, "/v1/unwrap", c.ip, body)
			if answer.Code < 400 {
				t.Errorf("answer %d %s", answer.Code, answer.Body)
			}
			return answer
		})
	})
}

func FuzzOriginalRequest(f *testing.F) {
	f.Add(strings.Repeat("0", 31)+"1", "shop", "8080")
	f.Add(taskARN(1), clusterARN, "")
	f.Add("../x", "shop", "99999999999999999999")
	f.Add("x", strings.Repeat("\xc8", 5000), "8080") // quoted, longer than an answer may be
	f.Fuzz(func(t *testing.T, name, namespace, port string) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder {
			q := url.Values{"name": {name}, "namespace": {namespace}, "port": {port}}
			return c.call(http.MethodGet, "/token?"+q.Encode(), c.ip, nil)
		})
	})
}

// FuzzRecord starts a broker with any record: it reads it, looks at its tokens and keeps
// or ends them.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"task_arn":"` + taskARN(1) + `","cluster":"` + clusterARN + `","tokens":[{"request_id":"r",
		"accessor":"a","status":"live","address":"10.0.1.1","port":8080,"expires":"2100-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"task_arn":"x","tokens":[{"status":"replaced"},{"status":"pending"},
		{"status":"?","renewable":true}]}`))
	f.Add([]byte(`{"tokens":[{},{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Record
		if json.Unmarshal(data, &r) != nil {
			return // KVStore.Load names the key
		}
		synctest.Test(t, func(t *testing.T) {
			store := &MemoryStore{}
			if _, err := store.Save(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			w := newFixture(t, func(o *Options) { o.Store = store })
			advance(3 * sweepInterval)
			if len(r.Tokens) == 0 {
				c := w.task(1)
				accepted(t, c.ask())
			}
			w.stop()
		})
	})
}

// FuzzAnnotations reads any labels and tags: what a task gets is within the limits.
func FuzzAnnotations(f *testing.F) {
	f.Add(" default, ,web", "1h", "app web", "2h")
	f.Add("global-management", "168h", "root", "-1h")
	f.Add("", "", "app\tweb", "1m")
	f.Fuzz(func(t *testing.T, policies, ttl, tagged, taggedTTL string) {
		tags := []types.Tag{{Key: aws.String(policiesLabel), Value: &tagged},
			{Key: aws.String(ttlLabel), Value: &taggedTTL}, {}}
		for _, r := range []Rules{{Policies: []string{"app", "w*"}}, {Policies: []string{"*"}, TrustTags: true}} {
			for _, byLabel := range []annotations{{policiesLabel: policies, ttlLabel: ttl}, {}} {
				s, err := r.annotations(byLabel, tags)
				if err != nil {
					continue
				}
				if s.ttl < MinTTL || s.ttl > MaxTTL {
					t.Errorf("TTL %s, want %s to %s", s.ttl, MinTTL, MaxTTL)
				}
				if len(s.policies) == 0 {
					t.Error("no policies")
				}
				for _, p := range s.policies {
					if forbidden(p) || !matches(r.Policies, p) {
						t.Errorf("policy %q is not permitted", p)
					}
					if strings.ContainsAny(p, ", \t") {
						t.Errorf("policy %q is several", p)
					}
				}
			}
		}
	})
}
