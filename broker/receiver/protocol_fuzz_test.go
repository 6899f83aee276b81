package receiver

import (
	"errors"
	"reflect"
	"testing"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// fuzz decodes any body. What is accepted must be encoded and decoded to the same value.
func fuzz[T any](f *testing.F, decode func([]byte) (T, error), encode func(T) ([]byte, error), seeds ...string) {
	for _, seed := range append(seeds, ``, `null`, `{}`, `[]`, `{"a":1}`, `{"nonce":null}`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := decode(body)
		if err != nil {
			var none T
			if !reflect.DeepEqual(value, none) {
				t.Fatalf("an error with a value: %v", err)
			}
			return
		}
		if len(body) > MaxBody {
			t.Fatalf("%d bytes are accepted", len(body))
		}
		if encode == nil {
			return
		}
		again, err := encode(value)
		if err != nil || len(again) > MaxBody {
			return // a control character takes more bytes when it is escaped
		}
		second, err := decode(again)
		if err != nil || !reflect.DeepEqual(value, second) {
			t.Fatalf("%s is decoded to another value, %v", again, err)
		}
	})
}

func FuzzDecodeTokenRequest(f *testing.F) {
	fuzz(f, DecodeTokenRequest, nil, `{"cluster":"shop","task_arn":"`+taskARN+`","nonce":"`+nonce16+
		`","callback_port":80,"public_key":"AAAA"}`)
}

func FuzzDecodeAccepted(f *testing.F) {
	fuzz(f, DecodeAccepted, nil, `{"request_id":"r","status_url":"/v1/token/r"}`)
}

func FuzzDecodePush(f *testing.F) {
	fuzz(f, DecodePush, nil,
		`{"token":"hpke1.a.b","ttl":120,"creation_time":"2026-11-21T06:40:00.1Z","wrapped_accessor":"a","request_id":"r","nonce":"`+nonce16+`"}`)
}

func FuzzDecodeUnwrapRequest(f *testing.F) {
	fuzz(f, DecodeUnwrapRequest, UnwrapRequest.Encode, `{"handle":"h","request_id":"r"}`)
}

func FuzzDecodeUnwrapped(f *testing.F) {
	fuzz(f, DecodeUnwrapped, nil,
		`{"secret":"s","accessor":"a","backend":"vault","expires":"2026-11-21T06:40:00Z","policies":["web"],"period":60}`)
}

func FuzzDecodeStatus(f *testing.F) {
	fuzz(f, DecodeStatus, nil, `{"request_id":"r","state":"active","reason":"","attempts":1}`)
}

func FuzzDecodeRefusal(f *testing.F) {
	fuzz(f, DecodeRefusal, nil, `{"error":"no","code":"c","request_id":"r"}`)
}

func FuzzOpen(f *testing.F) {
	key := newKey(f)
	sealed := seal(f, key, "handle")
	for _, seed := range []string{sealed, "", "hpke1..", "hpke1.AAAA.AAAA", "hpke2" + sealed[5:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		handle, err := key.Open(secret.New(text), taskARN, nonce)
		switch {
		case text == sealed && (err != nil || handle.Reveal() != "handle"):
			t.Fatalf("the sealed handle does not open: %v", err)
		case text != sealed && (!errors.Is(err, ErrUnseal) || !handle.Empty()):
			t.Fatalf("%q opens: %v", text, err)
		}
	})
}
