package receiver

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// DefaultPort is where a task listens for the push unless its request names another port.
	DefaultPort = 8080
	// MaxBody is the longest body of a request, an answer or a push, in bytes.
	MaxBody = 16 << 10
	// minNonce and maxNonce bound the length of a nonce, in bytes.
	minNonce, maxNonce = 16, 64
)

// Nonce is chosen at random by the requester and identifies its request in the push.
// Its text is standard base64.
type Nonce []byte

// NewNonce returns a nonce of 32 random bytes.
func NewNonce() Nonce { return random(32) }

func (n Nonce) String() string { return base64.StdEncoding.EncodeToString(n) }

// MarshalText returns the base64 text.
func (n Nonce) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText takes the canonical base64 text of 16 to 64 bytes.
func (n *Nonce) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(raw) < minNonce || len(raw) > maxNonce || Nonce(raw).String() != string(text) {
		return fmt.Errorf("nonce: want the base64 text of %d to %d bytes", minNonce, maxNonce)
	}
	*n = raw
	return nil
}

// NewHandle returns a handle: 32 random bytes as text. Store its SHA256.
func NewHandle() secret.Value {
	return secret.New(base64.RawURLEncoding.EncodeToString(random(32)))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// TokenRequest is the body of POST /v1/token and of POST /v1/rotate, which also has
// the current token as its bearer.
type TokenRequest struct {
	Cluster string `json:"cluster"`
	TaskARN string `json:"task_arn"`
	// CallbackPort is DefaultPort in a body without it.
	CallbackPort int   `json:"callback_port"`
	Nonce        Nonce `json:"nonce"`
	// PublicKey is Key.Public of the requester; without it the handle is not sealed, which
	// a broker refuses unless it is configured to push unsealed handles.
	PublicKey []byte `json:"public_key,omitempty"`
}

// DecodeTokenRequest decodes and validates a request. It does not parse the ARN.
func DecodeTokenRequest(body []byte) (TokenRequest, error) {
	r := TokenRequest{CallbackPort: DefaultPort}
	if err := decode(body, &r); err != nil {
		return TokenRequest{}, fmt.Errorf("token request: %w", err)
	}
	switch {
	case r.Cluster == "":
		return TokenRequest{}, errors.New("token request: no cluster")
	case r.TaskARN == "":
		return TokenRequest{}, errors.New("token request: no task_arn")
	case r.Nonce == nil:
		return TokenRequest{}, errors.New("token request: no nonce")
	case r.CallbackPort < 1 || r.CallbackPort > 65535:
		return TokenRequest{}, fmt.Errorf("token request: callback_port %d: want 1 to 65535", r.CallbackPort)
	}
	if len(r.PublicKey) > 0 {
		if _, err := publicKey(r.PublicKey); err != nil {
			return TokenRequest{}, fmt.Errorf("token request: %w", err)
		}
	}
	return r, nil
}

// Accepted is the answer 202 to a TokenRequest.
type Accepted struct {
	RequestID string `json:"request_id"`
	StatusURL string `json:"status_url"`
}

// DecodeAccepted decodes and validates an Accepted.
func DecodeAccepted(body []byte) (Accepted, error) {
	return decodeWith(body, "answer of the broker",
		func(a Accepted) string { return missing("request_id", a.RequestID) })
}

// Push is what the broker posts to the task.
type Push struct {
	// Token is the handle, sealed unless the request had no key.
	Token secret.Value `json:"token"`
	// TTL is the life of the handle in seconds.
	TTL             int       `json:"ttl"`
	CreationTime    time.Time `json:"creation_time"`
	WrappedAccessor string    `json:"wrapped_accessor"`
	// RequestID and Nonce are those of the request; the original form has neither.
	RequestID string `json:"request_id,omitempty"`
	Nonce     Nonce  `json:"nonce,omitempty"`
}

// Encode returns the body with the token in clear.
func (p Push) Encode() ([]byte, error) {
	type fields Push
	return json.Marshal(struct {
		Token string `json:"token"`
		fields
	}{p.Token.Reveal(), fields(p)})
}

// DecodePush decodes and validates a push.
func DecodePush(body []byte) (Push, error) {
	return decodeWith(body, "push", func(p Push) string {
		switch {
		case p.Token.Empty():
			return "no token"
		case p.TTL < 1 || p.TTL > 3600:
			return fmt.Sprintf("ttl %d: want 1 to 3600 seconds", p.TTL)
		case p.CreationTime.IsZero():
			return "no creation_time"
		}
		return missing("wrapped_accessor", p.WrappedAccessor)
	})
}

// UnwrapRequest is the body of POST /v1/unwrap. A handle of the original form has no RequestID.
type UnwrapRequest struct {
	Handle    secret.Value `json:"handle"`
	RequestID string       `json:"request_id,omitempty"`
}

// Encode returns the body with the handle in clear.
func (r UnwrapRequest) Encode() ([]byte, error) {
	type fields UnwrapRequest
	return json.Marshal(struct {
		Handle string `json:"handle"`
		fields
	}{r.Handle.Reveal(), fields(r)})
}

// DecodeUnwrapRequest decodes and validates a request to unwrap.
func DecodeUnwrapRequest(body []byte) (UnwrapRequest, error) {
	return decodeWith(body, "unwrap request",
		func(r UnwrapRequest) string { return missing("handle", r.Handle.Reveal()) })
}

// Unwrapped is the answer 200 to an UnwrapRequest: the token.
type Unwrapped struct {
	Secret   secret.Value `json:"secret"`
	Accessor string       `json:"accessor"`
	// Backend is consul-login, consul-acl or vault.
	Backend string `json:"backend"`
	// Expires is zero for a token that does not expire.
	Expires  time.Time `json:"expires,omitzero"`
	Policies []string  `json:"policies"`
	// Period is the period of a token that its holder renews at Vault, in seconds.
	Period int `json:"period,omitempty"`
}

// Encode returns the body with the secret in clear.
func (u Unwrapped) Encode() ([]byte, error) {
	type fields Unwrapped
	return json.Marshal(struct {
		Secret string `json:"secret"`
		fields
	}{u.Secret.Reveal(), fields(u)})
}

// DecodeUnwrapped decodes and validates an answer that holds a token.
func DecodeUnwrapped(body []byte) (Unwrapped, error) {
	return decodeWith(body, "unwrapped token", func(u Unwrapped) string {
		switch {
		case u.Secret.Empty():
			return "no secret"
		case u.Period < 0:
			return fmt.Sprintf("period %d: want 0 or more seconds", u.Period)
		}
		return missing("accessor", u.Accessor)
	})
}

// Status is the answer to GET /v1/token/{request_id}.
type Status struct {
	RequestID string `json:"request_id"`
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
	Attempts  int    `json:"attempts"`
}

// DecodeStatus decodes and validates a status.
func DecodeStatus(body []byte) (Status, error) {
	return decodeWith(body, "status", func(s Status) string { return missing("state", s.State) })
}

const (
	// UnknownToken is the Code of a refusal because the bearer is no live token of the task.
	UnknownToken = "unknown_token"
	// BackendFailed is the Code of a failure of the backend. With status 422 it lasts until
	// the operator of the broker mends the cause, which Message names.
	BackendFailed = "backend"
	// HandleUsed is the Code of a refusal because the handle was redeemed before.
	HandleUsed = "used"
)

// RevocationLimit is how long the broker takes to answer POST /v1/revoke. A token that is not
// revoked by then is answered with 503, and its holder asks again.
const RevocationLimit = 3 * time.Second

// Refusal is the body of every answer of the broker that is not 2xx.
type Refusal struct {
	Message   string `json:"error"`
	Code      string `json:"code"`
	RequestID string `json:"request_id,omitempty"`
}

// DecodeRefusal decodes and validates a refusal.
func DecodeRefusal(body []byte) (Refusal, error) {
	return decodeWith(body, "error of the broker", func(e Refusal) string { return missing("error", e.Message) })
}
