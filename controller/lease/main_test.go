package lease

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

var secured *testkit.Consul

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"candidate": playCandidate})
	var err error
	if secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, secured.Stop))
}

// candidate is one controller: a lock, and a client for its work.
type candidate struct {
	*Lock
	work *api.Client
}

func newCandidate(address, token, key, name string, log hclog.Logger) (candidate, error) {
	guard := NewGuard(NewClock())
	client, err := consulutil.NewClient(consulutil.Options{Address: address, Token: token, Wrap: guard.Transport})
	return candidate{New(Options{Client: client, Key: key, Holder: name, Guard: guard, Log: log}), client}, err
}

func newTestCandidate(t *testing.T, key, name string) candidate {
	t.Helper()
	c, err := newCandidate(secured.Require(t).HTTPAddr, secured.Token, key, name, hclog.New(&hclog.LoggerOptions{Output: t.Output()}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put writes as the work of a leader does.
func (c candidate) put(ctx context.Context, key string) error {
	_, err := c.work.KV().Put(&api.KVPair{Key: key, Value: []byte(c.Holder)}, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

// playCandidate leads when it may, and then writes its name as fast as it can, deaf
// to the end of its lead: only the guard can stop it. It says what happens.
// Arguments: address, key, key to write, name.
func playCandidate(args []string) int {
	c, err := newCandidate(args[0], testkit.ManagementToken, args[1], args[3], hclog.NewNullLogger())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the input's end is our orderly end
		os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	for ctx.Err() == nil {
		err := c.Lead(ctx, func(string) error { return nil }, func(term context.Context) error {
			fmt.Println("leads")
			for ctx.Err() == nil {
				if err := c.put(context.Background(), args[2]); err != nil {
					fmt.Println("refused")
					<-term.Done()
					return err
				}
			}
			return nil
		})
		fmt.Println("ended:", err)
	}
	return 0
}

// admin is a client of the whole server.
func admin(t *testing.T) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: secured.Require(t).HTTPAddr, Token: secured.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// holder is who holds a lock, or "".
func holder(t *testing.T, key string) string {
	t.Helper()
	pair, _, err := admin(t).KV().Get(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if pair == nil || pair.Session == "" {
		return ""
	}
	return string(pair.Value)
}

// Bounds for real time, in which a machine may be slow for a moment: pace_test.go
// proves those of the design in fake time.
const (
	takesOver = TakeOver + testkit.Patience/2
	// undelayed is less than the delay that a session's end costs.
	undelayed = LockDelay - 2*time.Second
)

// uniqueKey is a lock of this run's own: an earlier run's has a delay.
func uniqueKey(t *testing.T) string {
	return Key(fmt.Sprintf("arn:aws:ecs:us-west-2:111122223333:cluster/%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano()), "")
}

func nobody(string) error { return nil }
