package broker

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/meshtask/consul-ecs/broker/grant"
)

// fuzzed sends what a fuzzer made to a broker with one task, and checks the answer: it is
// no failure of the broker, errors have their form, and no grant is made except by 202.
func fuzzed(t *testing.T, send func(c *client) *httptest.ResponseRecorder) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, unsealed)
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
			if e, err := grant.DecodeError(answer.Body.Bytes()); err != nil || e.Code == "" || e.RequestID == "" {
				t.Errorf("answer %d %s: %v", answer.Code, answer.Body, err)
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
	f.Add([]byte(`{"cluster":"` + clusterARN + `","task_arn":"` + taskARN(1) + `","callback_port":8080,"nonce":"` + nonce + `","public_key":"AA=="}`))
	f.Add([]byte(`{"cluster":"shop","task_arn":"x","callback_port":80,"nonce":"` + nonce + `"}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
}

func FuzzTokenRequest(f *testing.F) {
	requestSeeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder { return c.call(http.MethodPost, "/v1/token", c.ip, body) })
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
	f.Fuzz(func(t *testing.T, name, namespace, port string) {
		fuzzed(t, func(c *client) *httptest.ResponseRecorder {
			q := url.Values{"name": {name}, "namespace": {namespace}, "port": {port}}
			return c.call(http.MethodGet, "/token?"+q.Encode(), c.ip, nil)
		})
	})
}
