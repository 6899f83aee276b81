package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestFaultSchedules and its long form play faults at random: failures of ECS, of the
// backend, the store, the network and the tasks; restarts of broker and containers;
// stopped tasks whose address another task gets; replays of everything.
func TestFaultSchedules(t *testing.T) {
	t.Parallel()
	given := 0
	for seed := range uint64(60) {
		given += playFaults(t, seed)
	}
	if given < 240 {
		t.Errorf("%d tokens were given: the faults prevent too much", given)
	}
}

func TestManyFaultSchedules(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for seed := range uint64(2000) {
		playFaults(t, 1000+seed)
	}
}

const (
	// faultTime is how long faults happen, and quietTime how long the broker then has.
	faultTime, quietTime = 6 * time.Minute, 4 * time.Minute
	// mostOverlap is how long a task may have two live tokens while faults happen: the
	// overlap, begun again by a restart, and attempts to revoke that fail.
	mostOverlap = 90 * time.Second
	// elsewhere is the address of no task.
	elsewhere = "10.0.1.250"
)

// chance is a source of random decisions that ends with the faults.
type chance struct {
	mu  sync.Mutex
	rng *rand.Rand
	end time.Time
}

func (c *chance) of(percent int) bool { return time.Now().Before(c.end) && c.n(100) < percent }

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chance) pause(most time.Duration) {
	<-time.After(time.Duration(1 + c.n(int(most))))
}

// faultyECS does not know tasks at times.
type faultyECS struct {
	*fakeECS
	chance *chance
}

func (e faultyECS) DescribeTasks(ctx context.Context, cluster string, arns []string) (*ecs.DescribeTasksOutput, error) {
	if e.chance.of(20) {
		e.chance.pause(20 * time.Second)
	}
	if e.chance.of(10) {
		return nil, errFault
	}
	out, err := e.fakeECS.DescribeTasks(ctx, cluster, arns)
	if err == nil && e.chance.of(10) {
		out.Tasks = nil // of moto: neither tasks nor failures
	}
	return out, err
}

// faultyStore loses writes, and answers to writes.
type faultyStore struct {
	Memory
	chance *chance
}

func (s *faultyStore) Load(ctx context.Context) ([]Record, error) {
	if s.chance.of(10) {
		return nil, errFault
	}
	return s.Memory.Load(ctx)
}

func (s *faultyStore) Save(ctx context.Context, r Record) (uint64, error) {
	if s.chance.of(5) {
		return 0, errFault
	}
	version, err := s.Memory.Save(ctx, r)
	if s.chance.of(5) {
		return 0, errFault
	}
	return version, err
}

// schedule is one run.
type schedule struct {
	*world
	t       *testing.T
	seed    uint64
	chance  *chance
	mu      sync.Mutex
	clients []*client
	stopped map[string]time.Time
	two     map[string]time.Time // since when a task has two live tokens
	// redeemed are the requests that have got their token.
	redeemed map[string]bool
	given    int
}

// playFaults plays one schedule and returns how many tokens were given.
func playFaults(t *testing.T, seed uint64) (given int) {
	synctest.Test(t, func(t *testing.T) {
		c := &chance{rng: rand.New(rand.NewPCG(seed, 1)), end: time.Now().Add(faultTime)}
		s := &schedule{t: t, seed: seed, chance: c, stopped: map[string]time.Time{}, two: map[string]time.Time{}, redeemed: map[string]bool{}}
		s.world = newWorld(t, func(o *Options) {
			o.Store = &faultyStore{chance: c}
			o.Source = faultyECS{o.Source.(*fakeECS), c}
			b := o.Backend.(*fakeBackend)
			b.wraps = seed%4 == 0
			b.fault = func(string) error {
				if c.of(15) {
					return transient()
				}
				return nil
			}
			b.created = s.checkCreation
		})
		var acting sync.WaitGroup
		for n := range 3 {
			acting.Go(func() { s.live(n + 1) })
		}
		acting.Go(s.restarts)
		acting.Go(s.watch)
		acting.Wait()
		<-time.After(quietTime)
		synctest.Wait()
		s.checkEnd()
		s.stop()
		s.wantNoSecrets()
		given = s.given
	})
	return given
}

func (s *schedule) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d, %s: %s", s.seed, time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// live is what happens at one address: tasks follow each other.
func (s *schedule) live(n int) {
	c := s.newTask(n, 0)
	for generation := 1; time.Now().Before(s.chance.end); {
		s.chance.pause(40 * time.Second)
		switch s.chance.n(12) {
		case 0, 1, 2:
			s.call(http.MethodPost, "/v1/token", c.ip, c.request())
		case 3, 4:
			c.rotate()
		case 5:
			c.lose()
		case 6: // replay of a request
			body := c.request()
			s.call(http.MethodPost, "/v1/token", c.ip, body)
			s.call(http.MethodPost, "/v1/token", c.ip, body)
		case 7: // replay of a handle
			if id := c.last(); id != "" {
				c.unwrap(id)
			}
		case 8: // another task asks in its name
			if code := s.call(http.MethodPost, "/v1/token", elsewhere, c.request()).Code; code == http.StatusAccepted {
				s.errorf("a request from %s was accepted", elsewhere)
			}
		case 9:
			s.ecs.change(c.arn, func(t *types.Task) { t.DesiredStatus, t.LastStatus = aws.String("STOPPED"), aws.String("STOPPING") })
			s.note(c.arn)
			s.chance.pause(20 * time.Second)
			s.ecs.change(c.arn, func(t *types.Task) { t.LastStatus, t.Attachments = aws.String("STOPPED"), nil })
			c = s.newTask(n, generation)
			generation++
		}
	}
}

func (c *client) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pushes) == 0 {
		return ""
	}
	return c.pushes[len(c.pushes)-1].RequestID
}

func (s *schedule) note(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[arn] = time.Now()
}

// newTask is a task at the address of the one before.
func (s *schedule) newTask(n, generation int) *client {
	c := &client{world: s.world, arn: taskARN(n + 100*generation), ip: fmt.Sprintf("10.0.1.%d", n), port: 8080}
	s.ecs.change(c.arn, func(t *types.Task) { *t = *runningTask(c.arn, c.ip) })
	s.listen(c.ip+":8080", func(r *http.Request) int {
		switch {
		case s.chance.of(10):
			return http.StatusServiceUnavailable
		case s.chance.of(5):
			return http.StatusOK // and does not redeem
		case s.chance.of(3):
			return s.steal(c, r)
		case s.chance.of(10):
			s.chance.pause(5 * time.Second)
		}
		status := c.pushed(r)
		s.checkOwner(c)
		if s.chance.of(10) {
			return 0
		}
		return status
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return c
}

// steal presents the handle of a push from elsewhere.
func (s *schedule) steal(c *client, push *http.Request) int {
	p, status := c.open(push)
	if status == http.StatusOK && c.unwrapFrom(elsewhere, p.RequestID).Code == http.StatusOK {
		s.errorf("a handle of %s was redeemed from %s", c.arn, elsewhere)
	}
	return http.StatusServiceUnavailable
}

func (s *schedule) restarts() {
	for s.chance.pause(3 * time.Minute); time.Now().Before(s.chance.end); s.chance.pause(3 * time.Minute) {
		s.restart()
	}
}

// checkCreation: ECS vouched for the task within the life of a handle, and a handle gives
// one token.
func (s *schedule) checkCreation(r backend.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	if s.redeemed[r.RequestID] {
		s.errorf("two tokens for request %s", r.RequestID)
	}
	s.redeemed[r.RequestID] = true
	if at, ok := s.stopped[r.Task.ARN]; ok && time.Since(at) > HandleTTL+requestLimit {
		s.errorf("token for %s, stopped %s ago", r.Task.ARN, time.Since(at))
	}
}

// checkOwner: a task holds its own token only.
func (s *schedule) checkOwner(c *client) {
	held := c.held()
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	for _, m := range s.backend.tokens {
		if m.secret == held && m.task != c.arn {
			s.errorf("%s holds the token of %s", c.arn, m.task)
		}
	}
}

// watch: two tokens of a task live together during the overlap only.
func (s *schedule) watch() {
	for time.Now().Before(s.chance.end) {
		<-time.After(time.Second)
		s.mu.Lock()
		clients := slices.Clone(s.clients)
		s.mu.Unlock()
		for _, c := range clients {
			n := len(s.backend.alive(c.arn))
			if s.backend.wraps {
				continue // a wrapped token lives before the task has it
			}
			since, two := s.two[c.arn]
			switch {
			case n < 2:
				delete(s.two, c.arn)
			case !two:
				s.two[c.arn] = time.Now()
			case time.Since(since) > mostOverlap:
				s.errorf("%s has %d tokens for %s", c.arn, n, time.Since(since))
				return
			}
		}
	}
}

// checkEnd: at rest each running task has one token at most, and a stopped one none.
func (s *schedule) checkEnd() {
	for _, c := range s.clients {
		alive := s.backend.alive(c.arn)
		if _, stopped := s.stopped[c.arn]; stopped && len(alive) > 0 {
			s.errorf("stopped task %s has %s", c.arn, strings.Join(alive, " "))
		}
		if len(alive) > 1 {
			s.errorf("task %s has %s, records %+v, audit log\n%s", c.arn, strings.Join(alive, " "), s.record(c.arn), s.history(c.arn))
		}
	}
}

// record is the stored record of a task.
func (s *schedule) record(arn string) Record {
	all, _ := s.options.Store.Load(s.t.Context())
	i := slices.IndexFunc(all, func(r Record) bool { return r.TaskARN == arn })
	if i < 0 {
		return Record{}
	}
	return all[i]
}

// history are the lines of the audit log about a task.
func (s *schedule) history(arn string) string {
	var b strings.Builder
	for text := range strings.Lines(s.audit.String()) {
		if strings.Contains(text, arn) {
			b.WriteString(text)
		}
	}
	return b.String()
}
