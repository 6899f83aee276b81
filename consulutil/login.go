package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Token is what a login gives. Accessor may be logged, Secret never.
type Token struct {
	Accessor, Secret string
}

// String hides the secret.
func (t Token) String() string { return "token " + t.Accessor }

// GoString hides the secret from %#v.
func (t Token) GoString() string { return t.String() }

// LoginParams are a login's.
type LoginParams struct {
	// Method is the auth method's name.
	Method string
	// Bearer proves who we are; see awsutil.Bearer.
	Bearer string
	// Partition is the auth method's, Consul Enterprise only.
	Partition string
	// Meta goes into the token's description.
	Meta map[string]string
}

// Login trades a bearer for a token. Once the request is on its way the end of
// ctx does not cut the answer off, only the client's timeout does: an answer
// that nobody reads would leave a token that nobody knows.
func Login(ctx context.Context, c *api.Client, p LoginParams) (Token, error) {
	ctx, cancel := untilSent(ctx)
	defer cancel()
	opts := (&api.WriteOptions{Partition: p.Partition}).WithContext(ctx)
	params := &api.ACLLoginParams{AuthMethod: p.Method, BearerToken: p.Bearer, Meta: p.Meta}
	token, _, err := c.ACL().Login(params, opts)
	if err != nil {
		err = fmt.Errorf("log in with auth method %q: %w", p.Method, err)
		if remedy := loginRemedy(err); remedy != "" {
			err = fmt.Errorf("%w: %s", err, remedy)
		}
		return Token{}, err
	}
	if token.SecretID == "" {
		return Token{}, fmt.Errorf("log in with auth method %q: the answer has no token", p.Method)
	}
	return Token{Accessor: token.AccessorID, Secret: token.SecretID}, nil
}

// untilSent returns a context that ends with ctx only as long as there is no
// connection to send a request on.
func untilSent(ctx context.Context) (context.Context, context.CancelFunc) {
	loose, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { stop() }}
	return httptrace.WithClientTrace(loose, trace), func() { stop(); cancel() }
}

// Unanswered says whether a request was sent whose answer did not arrive: it
// may have been carried out.
func Unanswered(err error) bool {
	var op *net.OpError
	dial := errors.As(err, &op) && op.Op == "dial"
	return err != nil && Status(err) == 0 && !dial && classifyTransport(err) == retry.Retry
}

// Logout destroys the token of a login. A token that Consul does not know
// (any more) is a success, if it says so twice: a server that is starting does not
// know the tokens of its log yet, and a consistent read waits until it does.
func Logout(ctx context.Context, c *api.Client, secret string) error {
	opts := (&api.WriteOptions{Token: secret}).WithContext(ctx)
	_, err := c.ACL().Logout(opts)
	if UnknownToken(err) {
		read := (&api.QueryOptions{Token: secret, RequireConsistent: true}).WithContext(ctx)
		_, _, err = c.ACL().TokenReadSelf(read)
		if err == nil {
			return errStarting
		}
	}
	if err == nil || UnknownToken(err) || Status(err) == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("log out: %w", err)
}

// errStarting is worth another attempt.
var errStarting = errors.New("log out: the server did not know the token, as it was starting")

// ReplicationLimit bounds WaitReplicated. Version 0.6 gave up after 2.1 s,
// which a server under load can exceed.
const ReplicationLimit = 10 * time.Second

// replicationPause lies between two reads. Replication to a healthy server
// takes a few milliseconds, so the first read usually suffices.
const replicationPause = 100 * time.Millisecond

// WaitReplicated returns when a server chosen without regard to leadership
// knows the token. Without it the local agent could ask a server that is behind
// and remember for a while that there is no such token. The error is a
// *retry.GaveUpError after ReplicationLimit and a *retry.PermanentError for a
// refusal that waiting cannot mend.
func WaitReplicated(ctx context.Context, c *api.Client, secret string) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, ReplicationLimit)
	defer cancel()
	opts := (&api.QueryOptions{Token: secret, AllowStale: true}).WithContext(ctx)
	tick := time.NewTicker(replicationPause)
	defer tick.Stop()
	var last error
	for attempt := 1; ; attempt++ {
		_, _, err := c.ACL().TokenReadSelf(opts)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("read the new token: %w", err)
		if ClassifyNewToken(err) == retry.Permanent {
			return &retry.PermanentError{Err: err}
		}
		// A read cut short by the end of ctx says nothing new.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				last = fmt.Errorf("%w; the last error: %w", cause, last)
			}
			return &retry.GaveUpError{Attempts: attempt, Elapsed: time.Since(start), Err: last}
		}
	}
}
