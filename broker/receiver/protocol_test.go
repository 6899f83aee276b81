package receiver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

const nonce16 = "AAECAwQFBgcICQoLDA0ODw=="

var (
	created = time.Date(2026, 11, 21, 6, 40, 0, 100_000_000, time.UTC)
	nonce   = Nonce{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

func TestBodiesHaveTheDocumentedForm(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		encode func() ([]byte, error)
		want   string
		decode func([]byte) (any, error)
		value  any
	}{
		"push": {
			Push{secret.New("hpke1.a.b"), 120, created, "0b0c", "01J", nonce}.Encode,
			`{"token":"hpke1.a.b","ttl":120,"creation_time":"2026-11-21T06:40:00.1Z","wrapped_accessor":"0b0c","request_id":"01J","nonce":"` + nonce16 + `"}`,
			decoder(DecodePush), Push{secret.New("hpke1.a.b"), 120, created, "0b0c", "01J", nonce},
		},
		"push of the original form": {
			Push{Token: secret.New("h"), TTL: 120, CreationTime: created, WrappedAccessor: "0b0c"}.Encode,
			`{"token":"h","ttl":120,"creation_time":"2026-11-21T06:40:00.1Z","wrapped_accessor":"0b0c"}`,
			decoder(DecodePush), Push{Token: secret.New("h"), TTL: 120, CreationTime: created, WrappedAccessor: "0b0c"},
		},
		"unwrap request": {
			UnwrapRequest{secret.New("h"), "01J"}.Encode, `{"handle":"h","request_id":"01J"}`,
			decoder(DecodeUnwrapRequest), UnwrapRequest{secret.New("h"), "01J"},
		},
		"unwrapped": {
			Unwrapped{secret.New("s"), "a", "vault", created, []string{"web"}, 60}.Encode,
			`{"secret":"s","accessor":"a","backend":"vault","expires":"2026-11-21T06:40:00.1Z","policies":["web"],"period":60}`,
			decoder(DecodeUnwrapped), Unwrapped{secret.New("s"), "a", "vault", created, []string{"web"}, 60},
		},
		"unwrapped without an end": {
			Unwrapped{Secret: secret.New("s"), Accessor: "a", Backend: "consul-acl", Policies: []string{}}.Encode,
			`{"secret":"s","accessor":"a","backend":"consul-acl","policies":[]}`,
			decoder(DecodeUnwrapped), Unwrapped{Secret: secret.New("s"), Accessor: "a", Backend: "consul-acl",
				Policies: []string{}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := c.encode()
			if err != nil || !sameJSON(body, c.want) {
				t.Errorf("encoded as %s (%v), want %s", body, err, c.want)
			}
			got, err := c.decode([]byte(c.want))
			if err != nil || !reflect.DeepEqual(got, c.value) {
				t.Errorf("decoded as %+v (%v), want %+v", got, err, c.value)
			}
		})
	}
}

func decoder[T any](decode func([]byte) (T, error)) func([]byte) (any, error) {
	return func(body []byte) (any, error) { return decode(body) }
}

// sameJSON compares the fields of two objects in any order.
func sameJSON(body []byte, want string) bool {
	fields := func(s string) map[string]bool {
		set := map[string]bool{}
		for f := range strings.SplitSeq(strings.Trim(s, "{}"), ",") {
			set[f] = true
		}
		return set
	}
	return reflect.DeepEqual(fields(string(body)), fields(want))
}

func TestTokenRequestHasDefaultPort(t *testing.T) {
	t.Parallel()
	r, err := DecodeTokenRequest([]byte(`{"cluster":"shop","task_arn":"` + taskARN + `","nonce":"` + nonce16 + `"}`))
	want := TokenRequest{Cluster: "shop", TaskARN: taskARN, CallbackPort: 8080, Nonce: nonce}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, %v; want %+v", r, err, want)
	}
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	request := func(more string) string {
		return `{"cluster":"shop","task_arn":"arn","nonce":"` + nonce16 + `"` + more + `}`
	}
	cases := []struct {
		decode     func([]byte) (any, error)
		body, want string
	}{
		{decoder(DecodeTokenRequest), ``, "token request: incomplete JSON"},
		{decoder(DecodeTokenRequest), `{`, "token request: incomplete JSON"},
		{decoder(DecodeTokenRequest), `null`, "token request: no cluster"},
		{decoder(DecodeTokenRequest), `[]`, `token request: field "" has the wrong type`},
		{decoder(DecodeTokenRequest), `{x`, "token request: invalid JSON at offset 2"},
		{decoder(DecodeTokenRequest), request("") + "{}", "token request: data after the JSON object"},
		{decoder(DecodeTokenRequest), request(`,"admin":true`), `token request: json: unknown field "admin"`},
		{decoder(DecodeTokenRequest), request(`,"callback_port":0`), "token request: callback_port 0: want 1 to 65535"},
		{decoder(DecodeTokenRequest), request(`,"callback_port":65536`),
			"token request: callback_port 65536: want 1 to 65535"},
		{decoder(DecodeTokenRequest), request(`,"public_key":"AAAA"`),
			"token request: public_key: want 32 bytes, an X25519 key"},
		{decoder(DecodeTokenRequest), `{"cluster":"shop","nonce":"` + nonce16 + `"}`, "token request: no task_arn"},
		{decoder(DecodeTokenRequest), `{"cluster":"shop","task_arn":"arn"}`, "token request: no nonce"},
		{decoder(DecodeTokenRequest), `{"cluster":"shop","task_arn":"arn","nonce":"AAAA"}`,
			"token request: nonce: want the base64 text of 16 to 64 bytes"},
		{decoder(DecodeTokenRequest), `{"nonce":"` + strings.Repeat("AAAA", 22) + `"}`,
			"token request: nonce: want the base64 text of 16 to 64 bytes"},
		{decoder(DecodeTokenRequest), `{"nonce":"AAECAwQFBgcICQoL\nDA0ODw=="}`,
			"token request: nonce: want the base64 text of 16 to 64 bytes"},
		{decoder(DecodeTokenRequest), request(strings.Repeat(" ", MaxBody)),
			"token request: body longer than 16384 bytes"},
		{decoder(DecodeAccepted), `{}`, "answer of the broker: no request_id"},
		{decoder(DecodePush), `{}`, "push: no token"},
		{decoder(DecodePush), `{"token":"t"}`, "push: ttl 0: want 1 to 3600 seconds"},
		{decoder(DecodePush), `{"token":"t","ttl":3601}`, "push: ttl 3601: want 1 to 3600 seconds"},
		{decoder(DecodePush), `{"token":"t","ttl":1}`, "push: no creation_time"},
		{decoder(DecodePush), `{"token":"t","ttl":1,"creation_time":"2026-11-21T06:40:00Z"}`,
			"push: no wrapped_accessor"},
		{decoder(DecodePush), `{"token":{"a":1}}`, `push: field "token" has the wrong type`},
		{decoder(DecodeUnwrapRequest), `{"request_id":"r"}`, "unwrap request: no handle"},
		{decoder(DecodeUnwrapped), `{"accessor":"a"}`, "unwrapped token: no secret"},
		{decoder(DecodeUnwrapped), `{"secret":"s"}`, "unwrapped token: no accessor"},
		{decoder(DecodeUnwrapped), `{"secret":"s","accessor":"a","period":-1}`,
			"unwrapped token: period -1: want 0 or more seconds"},
		{decoder(DecodeStatus), `{}`, "status: no state"},
		{decoder(DecodeRefusal), `{}`, "error of the broker: no error"},
	}
	for _, c := range cases {
		if _, err := c.decode([]byte(c.body)); err == nil || err.Error() != c.want {
			t.Errorf("%.80s: error %v, want %s", c.body, err, c.want)
		}
	}
}

func TestReadBodyRefusesMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	if body, err := ReadBody(bytes.NewReader(make([]byte, MaxBody))); err != nil || len(body) != 16384 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if _, err := ReadBody(bytes.NewReader(make([]byte, MaxBody+1))); !errors.Is(err, ErrTooLong) {
		t.Errorf("error %v, want ErrTooLong", err)
	}
}

func TestHandlesAndNoncesAreRandom(t *testing.T) {
	t.Parallel()
	a, b := NewHandle(), NewHandle()
	raw, err := base64.RawURLEncoding.DecodeString(a.Reveal())
	if err != nil || len(raw) != 32 {
		t.Errorf("got a handle of %d bytes (%v), want 32", len(raw), err)
	}
	if a.Equal(b) {
		t.Error("got the same handle twice")
	}
	if n, m := NewNonce(), NewNonce(); len(n) != 32 || bytes.Equal(n, m) {
		t.Errorf("nonce of %d bytes, equal to the next: %v", len(n), bytes.Equal(n, m))
	}
}
