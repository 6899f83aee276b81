package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// principalsOf returns what a method trusts, sorted.
func principalsOf(t testing.TB, method string) []string {
	t.Helper()
	c, requests := client(t, testkit.ManagementToken, nil)
	defer requests.close()
	m, _, err := c.ACL().AuthMethodRead(method, nil)
	if err != nil || m == nil {
		t.Fatalf("read method %s: %v, %v", method, m, err)
	}
	var arns []string
	for _, v := range m.Config["BoundIAMPrincipalARNs"].([]any) {
		arns = append(arns, v.(string))
	}
	slices.Sort(arns)
	return arns
}

func trusted(account int, path string) string {
	return fmt.Sprintf("arn:aws:iam::%012d:role/%s*", account, path)
}

// round starts 20 controllers of 20 accounts at once on fresh objects, and
// returns how many writes they made.
func round(t testing.TB, l fixture) (writes int) {
	t.Helper()
	const controllers = 20
	var all []string
	var wg sync.WaitGroup
	begin := make(chan struct{})
	failures := make(chan error, controllers)
	requests := make([]*recorder, controllers)
	for i := range controllers {
		c, r := client(t, testkit.ManagementToken, nil)
		requests[i] = r
		s := l.setup(t, c, Options{Cluster: cluster(i + 1)})
		all = append(all, trusted(i+1, "consul-ecs/"))
		wg.Go(func() {
			<-begin
			if _, err := s.Ensure(t.Context()); err != nil {
				failures <- fmt.Errorf("controller %d: %w", i+1, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	for _, r := range requests {
		writes += len(r.writes())
		r.close()
	}
	c, last := client(t, testkit.ManagementToken, nil)
	defer last.close()
	for _, method := range []string{l.clientMethod(), l.serviceMethod()} {
		if got := principalsOf(t, method); !slices.Equal(got, all) {
			t.Errorf("%s trusts %d of 20: %q", method, len(got), got)
		}
		if rules := rulesOf(t, c.ACL(), method); len(rules) != 1 {
			t.Errorf("%s has %d binding rules, want 1", method, len(rules))
		}
	}
	return writes
}

// TestControllersStartedAtOnceKeepEachOther: two programs that read,
// changed and wrote a method lost each other's ARNs.
func TestControllersStartedAtOnceKeepEachOther(t *testing.T) {
	t.Parallel()
	rounds := 100
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		round(t, newLab(t))
	}
	t.Logf("%d rounds of 20 controllers", rounds)
}

func BenchmarkTwentyControllers(b *testing.B) {
	writes := 0
	for range b.N {
		writes += round(b, newLab(b))
	}
	b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
}

// dying answers the first n writes and none after, as a process that was killed
// sends nothing any more.
func dying(n int) func(*http.Request) (*http.Response, error) {
	var mu sync.Mutex
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case n < 0:
			return nil, errors.New("killed")
		case r.Method == http.MethodGet:
			return nil, nil
		}
		if n--; n < 0 {
			return nil, errors.New("killed")
		}
		return nil, nil
	}
}

// bury ends the sessions that a dead controller left, as their TTL would.
func bury(t *testing.T, l fixture) {
	t.Helper()
	c := management(t)
	sessions, _, err := c.Session().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, _, err := c.KV().Get("consul-ecs/setup/"+l.name+"/lock", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if pair != nil && pair.Session == s.ID {
			if _, err := c.Session().Destroy(s.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCrashAfterEachWrite narrows the path of a controller that dies after each
// of its writes in turn, and starts it again.
func TestCrashAfterEachWrite(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			c := management(t)
			mustEnsure(t, l.setup(t, c, Options{RolePath: "/", WholeAccount: true}))
			mustEnsure(t, l.setup(t, c, Options{Cluster: cluster(2)}))
			addPrincipal(t, l.serviceMethod(), "arn:aws:iam::9:user/operator")

			killed, _ := client(t, testkit.ManagementToken, dying(n))
			_, err := l.setup(t, killed, Options{RolePath: "narrow"}).Ensure(t.Context())
			// Session, lock, and for two methods record, method and record; then release and
			// destroy, which may fail.
			if killed := n < 8; killed != (err != nil) {
				t.Fatalf("killed after %d writes: %v", n, err)
			}
			if err != nil && consulutil.Classify(err) != retry.NotYet {
				t.Fatalf("killed after %d writes: class %v of: %v", n, consulutil.Classify(err), err)
			}
			bury(t, l)
			s := l.setup(t, c, Options{RolePath: "narrow"})
			start := time.Now()
			mustEnsure(t, s)
			if took := time.Since(start); took > lockWait {
				t.Errorf("the next start took %s", took)
			}
			if diff := compare(
				[]string{trusted(1, "narrow/"), trusted(2, "consul-ecs/"), "arn:aws:iam::9:user/operator"},
				principalsOf(t, l.serviceMethod())); diff != "" {
				t.Error(diff)
			}
			if diff := compare([]string{trusted(1, "narrow/"), trusted(2, "consul-ecs/")},
				principalsOf(t, l.clientMethod())); diff != "" {
				t.Error(diff)
			}
			if again := mustEnsure(t, s); len(again) > 0 {
				t.Errorf("one more start changes:\n%s", text(again))
			}
		})
	}
}

func compare(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("trusts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func addPrincipal(t *testing.T, method, arn string) {
	t.Helper()
	acl := management(t).ACL()
	m, _, err := acl.AuthMethodRead(method, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Config["BoundIAMPrincipalARNs"] = append(m.Config["BoundIAMPrincipalARNs"].([]any), arn)
	if _, _, err := acl.AuthMethodUpdate(m, nil); err != nil {
		t.Fatal(err)
	}
}

// TestDeadHolderIsSurvived leaves the end of a dead holder's session to Consul.
func TestDeadHolderIsSurvived(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	killed, _ := client(t, testkit.ManagementToken, dying(2))
	if _, err := l.setup(t, killed, Options{}).Ensure(t.Context()); err == nil {
		t.Fatal("the killed controller worked")
	}
	start := time.Now()
	mustEnsure(t, l.setup(t, management(t), Options{Cluster: cluster(2)}))
	t.Logf("went on %s after the death of the lock's holder", time.Since(start).Round(100*time.Millisecond))
}

// TestLostLockStopsWrites: after a pause of the process others may have had the
// lock.
func TestLostLockStopsWrites(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c, requests := client(t, testkit.ManagementToken, nil)
	s := l.setup(t, c, Options{})
	held, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.release(t.Context())
	requests.writes()
	held.end = sinceBoot() // as after a pause
	found, _ := s.read(t.Context(), s.Wanted)
	failed := failures{}
	if changes := s.apply(t.Context(), held, s.Wanted.compare(found), failed); len(changes) > 0 {
		t.Errorf("wrote without the lock:\n%s", text(changes))
	}
	// As when the machine was suspended between hold and write.
	for _, w := range s.Wanted.compare(found).Writes {
		if err := s.write(t.Context(), held, w); !errors.Is(err, errLost) {
			t.Errorf("%s: got %v", w.Object, err)
		}
	}
	if w := requests.writes(); len(w) > 0 {
		t.Errorf("wrote without the lock: %q", w)
	}
	if err := s.finish(Plan{}, failed); !errors.Is(err, errLost) || consulutil.Classify(err) != retry.NotYet {
		t.Errorf("got %v", err)
	}
}

// TestSessionThatEndedIsALostLock: Consul may end the session before its time.
func TestSessionThatEndedIsALostLock(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.setup(t, management(t), Options{})
	held, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bury(t, l)
	held.end = sinceBoot() + lockTTL/4 // time to renew
	if _, _, err := held.hold(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("got %v", err)
	}
}

// TestOperatorsWriteInBetweenSurvives: an operator takes no lock.
func TestOperatorsWriteInBetweenSurvives(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mustEnsure(t, l.setup(t, management(t), Options{Cluster: cluster(2)}))
	var once sync.Once
	c, _ := client(t, testkit.ManagementToken, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && r.URL.Path == "/v1/acl/binding-rule" { // the methods were read, and are next
			once.Do(func() { addPrincipal(t, l.serviceMethod(), "arn:aws:iam::9:user/operator") })
		}
		return nil, nil
	})
	s := l.setup(t, c, Options{})
	if _, err := s.Ensure(t.Context()); !errors.Is(err, errChanged) || consulutil.Classify(err) != retry.NotYet {
		t.Errorf("got %v", err)
	}
	mustEnsure(t, s)
	want := []string{trusted(1, "consul-ecs/"), trusted(2, "consul-ecs/"), "arn:aws:iam::9:user/operator"}
	if diff := compare(want, principalsOf(t, l.serviceMethod())); diff != "" {
		t.Error(diff)
	}
}

// TestMethodMadeInBetweenSurvives: a controller of 0.6 that starts beside
// ours takes no lock, and to make a method that is there replaces it.
func TestMethodMadeInBetweenSurvives(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	theirs := "arn:aws:iam::000000000002:role/*"
	var once sync.Once
	c, _ := client(t, testkit.ManagementToken, func(r *http.Request) (*http.Response, error) {
		// no method was found, and the client's is first
		if r.Method == http.MethodPut && r.URL.Path == "/v1/acl/auth-method" {
			once.Do(func() {
				_, _, err := management(t).ACL().AuthMethodCreate(&api.ACLAuthMethod{
					Name: l.serviceMethod(), Type: "aws-iam", MaxTokenTTL: time.Hour,
					Config: map[string]any{"BoundIAMPrincipalARNs": []string{theirs}, "EnableIAMEntityDetails": true},
				}, nil)
				if err != nil {
					t.Error(err)
				}
			})
		}
		return nil, nil
	})
	s := l.setup(t, c, Options{})
	if _, err := s.Ensure(t.Context()); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
	mustEnsure(t, s)
	if diff := compare([]string{trusted(1, "consul-ecs/"), theirs}, principalsOf(t, l.serviceMethod())); diff != "" {
		t.Error(diff)
	}
	if method, _, err := management(t).ACL().AuthMethodRead(l.serviceMethod(), nil); err != nil ||
		method.MaxTokenTTL != time.Hour {
		t.Errorf("%+v, %v", method, err)
	}
}

// TestContextEndsTheWait: a stop signal does not wait for the lock.
func TestContextEndsTheWait(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := l.setup(t, management(t), Options{Cluster: cluster(2)})
	held, err := other.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.release(t.Context())
	waiting := make(chan struct{})
	var once sync.Once
	c, _ := client(t, testkit.ManagementToken, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet && r.URL.Query().Get("index") != "" {
			once.Do(func() { close(waiting) })
		}
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	s := l.setup(t, c, Options{})
	go func() { _, err := s.Ensure(ctx); done <- err }()
	<-waiting
	cancel()
	if err := <-done; err == nil ||
		!strings.Contains(err.Error(), "take the setup lock consul-ecs/setup/"+l.name+"/lock") {
		t.Errorf("got %v", err)
	}
}
