package consulutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Token is the result of a login. Accessor may be logged, Secret never.
type Token struct {
	Accessor, Secret string
	// Roles are the names of the roles that the token takes permissions from,
	// separated by commas; service identities are not roles. Identities are the services
	// of those.
	Roles, Identities string
	// Created and Expires are by the servers' clock, those of ReadToken by ours; Expires is
	// zero for a token that does not expire.
	Created, Expires time.Time
}

// RenewAt returns when to log in again: after 60 to 70 % of the token's life, so that
// the tokens of a fleet are not renewed together and several attempts fit into the
// rest. It is zero for a token that does not expire.
func (t Token) RenewAt() time.Time {
	if t.Expires.IsZero() {
		return time.Time{}
	}
	life := max(0, t.Expires.Sub(t.Created))
	return t.Created.Add(life*6/10 + rand.N(life/10+1))
}

// Explain marks the refusal of a request that carries the token, right after the
// login: permissions of a token with roles depend on the roles' policies, which
// may be attached later. Other errors are returned as they are.
func (t Token) Explain(err error) error {
	if t.Roles == "" || Status(err) != http.StatusForbidden || UnknownToken(err) || Classify(err) != retry.Permanent {
		return err
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if t.Identities != "" { // of another name, as a wrong tag gives
			return &classed{fmt.Errorf("%w; the token has a service identity for %s, and role %s",
				err, t.Identities, t.Roles), retry.NotYet}
		}
		err = fmt.Errorf("%s: %w", refused.Op, refused.Err) // its remedy is for tokens with service identities
	}
	return &classed{fmt.Errorf("%w: role %s of the token grants too little yet; attach a policy to it, or to the "+
		"role of the auth method's binding rule", err, t.Roles), retry.NotYet}
}

// RefusedError is a request that Consul refused, with what the user can do about it.
type RefusedError struct {
	// Op is the request with its object, such as `register service "web-abc"`.
	Op     string
	Err    error
	Remedy string
}

func (e *RefusedError) Error() string { return e.Op + ": " + e.Err.Error() + ": " + e.Remedy }
func (e *RefusedError) Unwrap() error { return e.Err }

// String hides the secret.
func (t Token) String() string { return "token " + t.Accessor }

// GoString hides the secret from %#v.
func (t Token) GoString() string { return t.String() }

// LoginParams are a login's.
type LoginParams struct {
	// Method is the auth method's name.
	Method string
	// Bearer proves the identity of this task; see awsutil.Bearer.
	Bearer string
	// Partition is the auth method's, Consul Enterprise only.
	Partition string
	// Datacenter is where the login goes; the server's own when empty.
	Datacenter string
	// Meta goes into the token's description.
	Meta map[string]string
	// Previous is the secret that an earlier login of the same container left, or
	// empty. Session.Login returns its token again while Consul has it, since a
	// running proxy may present it.
	Previous string
}

// Login trades a bearer for a token. Once there is a connection to send the
// request on, the end of ctx does not cut the answer off: an answer that is not read
// would leave a token without an owner. The limit of the request does, and RequestTimeout
// after a cancellation of ctx.
func Login(ctx context.Context, c *api.Client, p LoginParams) (Token, error) {
	var sent atomic.Bool
	ctx, cancel := untilSent(ctx, &sent)
	defer cancel()
	opts := (&api.WriteOptions{Partition: p.Partition, Datacenter: p.Datacenter}).WithContext(ctx)
	params := &api.ACLLoginParams{AuthMethod: p.Method, BearerToken: p.Bearer, Meta: p.Meta}
	token, _, err := c.ACL().Login(params, opts)
	if err != nil {
		if sent.Load() && Status(err) == 0 {
			err = &unanswered{err}
		}
		return Token{}, explainLogin(p.Method, err)
	}
	if token.SecretID == "" {
		return Token{}, fmt.Errorf("log in with auth method %q: the answer has no token", p.Method)
	}
	return newToken(token), nil
}

func newToken(t *api.ACLToken) Token {
	var roles, identities []string
	for _, r := range t.Roles {
		roles = append(roles, r.Name)
	}
	for _, s := range t.ServiceIdentities {
		identities = append(identities, s.ServiceName)
	}
	token := Token{
		Accessor: t.AccessorID, Secret: t.SecretID, Created: t.CreateTime,
		Roles: strings.Join(roles, ","), Identities: strings.Join(identities, ","),
	}
	if t.ExpirationTime != nil {
		token.Expires = *t.ExpirationTime
	}
	return token
}

// maxSkew is the difference of clocks that is ignored: the header Date has seconds only.
const maxSkew = 2 * time.Second

// Skew returns how far our clock is ahead of that of the server whose answer has the header;
// negative if it is behind, and 0 if the answer has no date or the difference is small.
func Skew(answer http.Header) time.Duration {
	date, err := http.ParseTime(answer.Get("Date"))
	if skew := time.Since(date); err == nil && skew.Abs() > maxSkew {
		return skew
	}
	return 0
}

// loginPrefix is what Consul puts before the meta of a login in the description of its token.
const loginPrefix = "token created via login"

// LoginMeta returns the meta of the login that made a token with that description, or nil. It is
// what the client of the login declared.
func LoginMeta(description string) map[string]string {
	text, ok := strings.CutPrefix(description, loginPrefix)
	// A map, because a struct's fields match in any letter case.
	var meta map[string]string
	if !ok || json.Unmarshal([]byte(strings.TrimPrefix(text, ": ")), &meta) != nil {
		return nil
	}
	return meta
}

// ReadToken returns what Consul knows about the token of a secret, in particular its
// lifetime, converted to our clock.
func ReadToken(ctx context.Context, c *api.Client, secret string) (Token, error) {
	var read api.ACLToken
	var skew time.Duration
	ctx = context.WithValue(ctx, sinkKey{}, sink(func(r *http.Response) error {
		skew = Skew(r.Header)
		return json.NewDecoder(r.Body).Decode(&read)
	}))
	if _, _, err := c.ACL().TokenReadSelf((&api.QueryOptions{Token: secret}).WithContext(ctx)); err != nil {
		return Token{}, fmt.Errorf("read the token: %w", err)
	}
	token := newToken(&read)
	if !token.Expires.IsZero() {
		token.Created, token.Expires = token.Created.Add(skew), token.Expires.Add(skew)
	}
	return token, nil
}

// resume returns the token of p.Previous, or none if Consul does not have it or
// another login made it. The read is consistent: a server that is starting does
// not know the tokens of its log yet.
func resume(ctx context.Context, c *api.Client, p LoginParams) (Token, error) {
	opts := (&api.QueryOptions{Token: p.Previous, RequireConsistent: true}).WithContext(ctx)
	token, _, err := c.ACL().TokenReadSelf(opts)
	switch {
	case err != nil && !Classify(err).Retryable():
		return Token{}, nil // a login has the same refusal, and its remedy
	case err != nil:
		return Token{}, fmt.Errorf("read the previous token: %w", err)
	}
	meta, err := json.Marshal(p.Meta)
	if err != nil || !aclrules.SameName(token.AuthMethod, p.Method) ||
		token.Description != "token created via login: "+string(meta) {
		return Token{}, err
	}
	return newToken(token), nil
}

// untilSent returns a context that ends with ctx only as long as there is no
// connection to send a request on; sent is set as soon as there is one. After that it ends
// RequestTimeout after a cancellation of ctx, and not at the deadline of ctx.
func untilSent(ctx context.Context, sent *atomic.Bool) (context.Context, context.CancelFunc) {
	loose, cancel := context.WithCancel(context.WithoutCancel(ctx))
	end := func() {
		switch {
		case !sent.Load():
			cancel()
		case errors.Is(ctx.Err(), context.Canceled):
			time.AfterFunc(RequestTimeout, cancel)
		}
	}
	stop := context.AfterFunc(ctx, end)
	if ctx.Err() != nil {
		cancel() // AfterFunc calls it some time
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	return httptrace.WithClientTrace(loose, trace), func() { stop(); cancel() }
}

// unanswered is the error of a request that was sent.
type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// isUnanswered reports whether err is of a login whose request was sent and whose
// answer did not arrive: it may have made a token.
func isUnanswered(err error) bool {
	_, sent := errors.AsType[*unanswered](err)
	return sent
}

// Logout destroys the token of a login. A token that Consul does not know is a
// success if a consistent read confirms it: a server that is starting does not
// know the tokens of its log yet, and such a read waits until it does.
func Logout(ctx context.Context, c *api.Client, secret string) error {
	opts := (&api.WriteOptions{Token: secret}).WithContext(ctx)
	_, err := c.ACL().Logout(opts)
	if UnknownToken(err) {
		read := (&api.QueryOptions{Token: secret, RequireConsistent: true}).WithContext(ctx)
		_, _, err = c.ACL().TokenReadSelf(read)
		if err == nil {
			return fmt.Errorf("log out: %w", errStarting)
		}
	}
	if err == nil || UnknownToken(err) {
		return nil
	}
	return fmt.Errorf("log out: %w", err)
}

// DeleteToken deletes the token of an accessor. When Consul answers that it has no such token, a
// consistent read confirms it: the answer is the same if Consul does not know the token of the
// request, and a server that is starting does not know the tokens of its log yet.
func DeleteToken(ctx context.Context, c *api.Client, accessor string, o *api.WriteOptions) error {
	_, err := c.ACL().TokenDelete(accessor, o.WithContext(ctx))
	if !answered(err, http.StatusNotFound, "Cannot find token to delete") {
		return err
	}
	read := &api.QueryOptions{Token: o.Token, Namespace: o.Namespace, Partition: o.Partition, RequireConsistent: true}
	switch _, _, err := c.ACL().TokenRead(accessor, read.WithContext(ctx)); {
	case NoToken(err):
		return nil
	case err != nil:
		return fmt.Errorf("confirm that there is no such token: %w", err)
	}
	return errStarting
}

// errStarting is retried.
var errStarting = errors.New("the Consul server is starting and did not know the token")
