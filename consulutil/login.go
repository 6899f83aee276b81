package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Login trades a bearer for a token. A login whose answer does not arrive may
// have made a token that nobody knows; it is left to the controller.
func Login(ctx context.Context, c *api.Client, p LoginParams) (Token, error) {
	opts := (&api.WriteOptions{Partition: p.Partition}).WithContext(ctx)
	params := &api.ACLLoginParams{AuthMethod: p.Method, BearerToken: p.Bearer, Meta: p.Meta}
	token, _, err := c.ACL().Login(params, opts)
	if err != nil {
		return Token{}, fmt.Errorf("log in with auth method %q: %w", p.Method, err)
	}
	if token.SecretID == "" {
		return Token{}, fmt.Errorf("log in with auth method %q: the answer has no token", p.Method)
	}
	return Token{Accessor: token.AccessorID, Secret: token.SecretID}, nil
}

// Logout destroys the token of a login. A token that Consul does not know
// (any more) is a success.
func Logout(ctx context.Context, c *api.Client, secret string) error {
	opts := (&api.WriteOptions{Token: secret}).WithContext(ctx)
	_, err := c.ACL().Logout(opts)
	if err == nil || UnknownToken(err) || Status(err) == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("log out: %w", err)
}

// ReplicationLimit bounds WaitReplicated. Version 0.6 gave up after 2.1 s,
// which a server under load can exceed.
const ReplicationLimit = 10 * time.Second

// replicationPause lies between two reads. Replication to a healthy server
// takes a few milliseconds, so the first read usually suffices.
const replicationPause = 100 * time.Millisecond

// WaitReplicated returns when a server chosen without regard to leadership
// knows the token, and an error after ReplicationLimit or on a refusal that
// waiting cannot mend. Without it the local agent could ask a server that is
// behind and remember for a while that there is no such token.
func WaitReplicated(ctx context.Context, c *api.Client, secret string) error {
	ctx, cancel := context.WithTimeout(ctx, ReplicationLimit)
	defer cancel()
	opts := (&api.QueryOptions{Token: secret, AllowStale: true}).WithContext(ctx)
	tick := time.NewTicker(replicationPause)
	defer tick.Stop()
	var last error
	for {
		_, _, err := c.ACL().TokenReadSelf(opts)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if ClassifyNewToken(err) == retry.Permanent {
			return fmt.Errorf("read the new token: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				last = errors.Join(cause, last)
			}
			return fmt.Errorf("the new token did not reach the servers in %s: %w", ReplicationLimit, last)
		}
	}
}
