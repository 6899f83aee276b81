package lease

import (
	"context"
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
)

// deaf ends the process's context when the lock was taken, before it hears of it.
type deaf struct {
	next http.RoundTripper
	end  context.CancelFunc
}

// RoundTrip implements http.RoundTripper.
func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err == nil && r.URL.Query().Has("acquire") {
		resp.Body.Close()
		d.end()
		return nil, context.Canceled
	}
	return resp, err
}

// TestLeadIsStoppedWhileItTakesTheLock: nobody waits for the session of one who is
// gone, and for the lock's delay.
func TestLeadIsStoppedWhileItTakesTheLock(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	guard, key := NewGuard(NewClock()), uniqueKey(t)
	client, err := consulutil.NewClient(consulutil.Options{
		Address: secured.Require(t).HTTPAddr, Token: secured.Token,
		Wrap: func(next http.RoundTripper) http.RoundTripper { return deaf{guard.Transport(next), end} },
	})
	if err != nil {
		t.Fatal(err)
	}
	l := New(Options{Client: client, Key: key, Holder: "first", Guard: guard, Log: hclog.NewNullLogger()})
	err = l.Lead(ctx, nobody, func(context.Context) error {
		t.Error("it leads")
		return nil
	})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("got %v", err)
	}
	pair, _, err := admin(t).KV().Get(key, nil)
	if err != nil || pair == nil {
		t.Fatalf("the key was never locked: %v, %v", pair, err)
	}
	if pair.Session != "" {
		t.Errorf("%s still has the lock", pair.Value)
	}
}
