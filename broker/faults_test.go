package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestFaultSchedules and its long form let the real broker and real receivers run in one
// process, in virtual time, and play faults at random: ECS, the backend, the store and the
// network fail, lag and lose answers; for minutes something else answers in place of the
// backend's server, and refuses, lies or redirects; broker and receivers crash between any two steps;
// tasks are stopped and killed, and others get their addresses; requests and pushes are
// replayed; the clocks differ by 5 minutes.
func TestFaultSchedules(t *testing.T) { schedules(t, 0, 50, 1) }

func TestThousandsOfFaultSchedules(t *testing.T) {
	testkit.Long(t)
	schedules(t, 1000, 4000, 1)
}

// Two brokers share the store and the leader's lock, which one of them loses at any step and
// notices later. Their clocks differ by 3 seconds.
func TestFaultSchedulesOfTwoBrokers(t *testing.T) { schedules(t, 50_000, 50_050, 2) }

func TestThousandsOfFaultSchedulesOfTwoBrokers(t *testing.T) {
	testkit.Long(t)
	schedules(t, 51_000, 53_000, 2)
}

func schedules(t *testing.T, from, to uint64, brokers int) {
	t.Parallel()
	given, least := 0, 0
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			given += playFaults(t, seed, brokers)
			least += 8
		})
	}
	if given < least {
		t.Errorf("%d tokens were given, want %d: the faults prevent too much", given, least)
	}
}

const (
	// faultTime is how long faults happen, and quietTime how long the broker then has.
	faultTime, quietTime = 8 * time.Minute, 4 * time.Minute
	// faultTTL is the life of tokens: many windows of faults fit into its last third. In some
	// schedules it is longLife or taskLife, so that only a revocation ends a token.
	faultTTL, longLife = 4 * time.Minute, time.Hour
	// mostOverlap is how long a task may have two live tokens while faults happen: the
	// overlap, and attempts to revoke that fail.
	mostOverlap = 60 * time.Second
	// elsewhere is the address of no task.
	elsewhere = "10.0.1.250"
)

// schedule is one run.
type schedule struct {
	*fixture
	t      *testing.T
	seed   uint64
	chance *chance
	tasks  *laggingECS
	store  *MemoryStore
	lock   lock
	skew   time.Duration
	login  bool // as consul-login: who does not know a secret cannot revoke
	long   bool // tokens have longLife or taskLife
	// revokes is the backend for revocations, and outage the way to its server.
	revokes backend.Backend
	outage  outage

	mu       sync.Mutex
	brokers  []*brokerProcess
	ports    map[string]*port
	all      []*faultyTask
	stopped  map[string]time.Time
	two      map[string]time.Time // since when a task has two live tokens
	orphans  map[string]bool      // tokens that no process can revoke
	redeemed map[string]bool      // requests that got their token
	captured [][]byte             // bodies of requests
	pushes   []recorded
	given    int
	granted  map[string]int // tokens by task
}

// playFaults plays one schedule and returns how many tokens were given.
func playFaults(t *testing.T, seed uint64, brokers int) int {
	dir := t.TempDir()
	given := 0
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := &schedule{
			t: t, seed: seed, chance: &chance{rng: rand.New(rand.NewPCG(seed, 1)), start: now.Add(time.Millisecond),
				end: now.Add(faultTime)},
			ports: map[string]*port{}, stopped: map[string]time.Time{}, two: map[string]time.Time{},
			orphans:  map[string]bool{},
			redeemed: map[string]bool{}, granted: map[string]int{}, store: &MemoryStore{}, login: seed%3 == 1,
			long: seed%4 == 3,
			skew: []time.Duration{0, 5 * time.Minute, -5 * time.Minute}[seed/3%3],
		}
		s.fixture = idleWorld(t, s.prepare)
		s.revokes = s.revoker()
		s.brokers = make([]*brokerProcess, brokers)
		for place := range s.brokers {
			s.startBroker(place)
		}
		var acting sync.WaitGroup
		for n := range 3 {
			acting.Go(func() { s.live(n+1, dir) })
		}
		acting.Go(s.watch)
		acting.Go(s.replay)
		acting.Wait()
		<-time.After(quietTime)
		s.checkEnd()
		for _, f := range s.all {
			f.end()
		}
		for _, p := range s.brokers {
			p.stop()
		}
		s.wantNoSecrets()
		given = s.given
	})
	return given
}

// prepare puts the faults around the ports of a broker.
func (s *schedule) prepare(o *Options) {
	s.tasks = &laggingECS{fakeECS: o.Source.(*fakeECS), s: s, history: map[string][]ecsState{}}
	s.tasks.labels[ttlLabel] = faultTTL.String()
	if s.long {
		s.tasks.labels[ttlLabel] = longLife.String()
	}
	if s.seed%12 == 3 { // neither login nor wraps
		o.Rules.TaskLife, s.tasks.labels[ttlLabel] = true, taskLife
	}
	b := o.Backend.(*fakeBackend)
	b.wraps = s.seed%3 == 2
	b.created = s.checkCreation
	b.fault = func(string) error {
		if s.chance.of(15) {
			return transient()
		}
		return nil
	}
}

func (s *schedule) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d, %s: %s", s.seed, time.Now().Format("04:05.000"), fmt.Sprintf(format, args...))
}

// live plays what happens at one address: tasks follow each other.
func (s *schedule) live(n int, dir string) {
	for generation := 0; time.Now().Before(s.chance.end); generation++ {
		f := &faultyTask{s: s, arn: taskARN(n + 100*generation), ip: fmt.Sprintf("10.0.1.%d", n), log: &buffer{}}
		f.file = filepath.Join(dir, fmt.Sprintf("%d-%d", n, generation), "token")
		if err := os.Mkdir(filepath.Dir(f.file), 0o700); err != nil {
			s.errorf("%v", err)
			return
		}
		s.tasks.change(f.arn, func(t *types.Task) {
			*t, t.LastStatus = *runningTask(f.arn, f.ip), aws.String("PROVISIONING")
		})
		s.tasks.change(f.arn, func(t *types.Task) { t.LastStatus = aws.String("PENDING") })
		s.mu.Lock()
		s.all = append(s.all, f)
		s.mu.Unlock()
		f.start()
		end := time.Now().Add(time.Minute + time.Duration(s.chance.n(int(faultTime))))
		s.application(f, end)
		if !end.Before(s.chance.end) {
			return
		}
		s.tasks.change(f.arn, func(t *types.Task) {
			t.DesiredStatus, t.LastStatus = aws.String("STOPPED"), aws.String("STOPPING")
		})
		if s.chance.n(2) == 0 {
			f.end()
		} else {
			f.kill()
		}
		s.mu.Lock()
		s.stopped[f.arn] = time.Now()
		s.mu.Unlock()
		s.tasks.change(f.arn, func(t *types.Task) { t.LastStatus, t.Attachments = aws.String("STOPPED"), nil })
	}
}

// application makes calls with the token of its file, which it reads again after some
// seconds.
func (s *schedule) application(f *faultyTask, end time.Time) {
	token := ""
	for time.Now().Before(end) && time.Now().Before(s.chance.end) && !f.ending() {
		crashes := f.crashes.Load()
		data, err := os.ReadFile(f.file)
		if crashes%2 > 0 || f.crashes.Load() != crashes {
			data, err = []byte(token), nil
		}
		if token != "" && !slices.Contains(s.backend.alive(f.arn), token) {
			s.errorf("a call of %s failed: %s is dead, the file has %q\n%s\n%s", f.arn, token, data, f.log,
				s.history(f.arn))
			return
		}
		if first := token == "" && errors.Is(err, fs.ErrNotExist); err != nil && !first {
			s.errorf("%v after %q\n%s\n%s", err, token, f.log, s.history(f.arn))
			return
		}
		token = string(data)
		<-time.After(4 * time.Second)
	}
}

// capture remembers requests for replays.
func (s *schedule) capture(r *http.Request, body []byte) {
	if r.Method == http.MethodPost && bytes.Contains(body, []byte("task_arn")) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.captured = append(s.captured, body)
	}
}

// replay sends requests again from elsewhere, and pushes to the address of then.
func (s *schedule) replay() {
	for s.chance.pause(30 * time.Second); time.Now().Before(s.chance.end); s.chance.pause(30 * time.Second) {
		s.mu.Lock()
		if len(s.captured) == 0 {
			s.mu.Unlock()
			continue
		}
		body := s.captured[s.chance.n(len(s.captured))]
		var push recorded
		if n := len(s.pushes); n > 0 {
			push = s.pushes[s.chance.n(n)]
		}
		s.mu.Unlock()
		s.again(push)
		r := httptest.NewRequest(http.MethodPost, "/v1/token", bytes.NewReader(body))
		r.RemoteAddr = elsewhere + ":40000"
		recorder := httptest.NewRecorder()
		s.serving("").handler.ServeHTTP(recorder, r)
		if recorder.Code == http.StatusAccepted {
			s.errorf("a request from %s was accepted", elsewhere)
		}
	}
}

// checkCreation: ECS vouched for the task within the life of a handle, and a handle gives
// one token.
func (s *schedule) checkCreation(r backend.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	s.granted[r.Task.ARN]++
	if s.redeemed[r.RequestID] {
		s.errorf("two tokens for request %s", r.RequestID)
	}
	s.redeemed[r.RequestID] = true
	if at, ok := s.stopped[r.Task.ARN]; ok && time.Since(at) > handleTTL+requestLimit+mostLag {
		s.errorf("token for %s, stopped %s ago", r.Task.ARN, time.Since(at))
	}
}

// watch: two tokens of a task live together during the overlap only.
func (s *schedule) watch() {
	for time.Now().Before(s.chance.end) {
		<-time.After(2 * time.Second)
		s.mu.Lock()
		for _, f := range s.all {
			n := s.liveTokens(f)
			since, two := s.two[f.arn]
			switch {
			case n < 2, s.backend.wraps, f.ending(),
				s.outage.affects(time.Now()): // a wrapped token lives before the task has it
				delete(s.two, f.arn)
			case !two:
				s.two[f.arn] = time.Now()
			case time.Since(since) > mostOverlap:
				s.errorf("%s has %d tokens for %s\n%s\n%s", f.arn, n, time.Since(since), f.log, s.history(f.arn))
				s.two[f.arn] = time.Now().Add(time.Hour)
			}
		}
		s.mu.Unlock()
	}
}

// checkEnd: at rest each running task has one token, except for the overlap, and a stopped
// one none that some process can revoke. With a long life a running task may still have one
// of which no request has shown whether it is in use.
func (s *schedule) checkEnd() {
	for _, f := range s.all {
		alive := s.backend.alive(f.arn)
		if len(alive) > 1 {
			<-time.After(overlap + 2*time.Second)
			alive = s.backend.alive(f.arn)
		}
		s.mu.Lock()
		n := s.liveTokens(f)
		_, stopped := s.stopped[f.arn]
		s.mu.Unlock()
		switch {
		case stopped && n > 0:
			s.errorf("%s is stopped and has %d tokens at the end\n%s\n%s", f.arn, n, f.log, s.history(f.arn))
		case !stopped && !f.ending() && (len(alive) == 0 || len(alive) > 1 && !s.long):
			s.errorf("%s has %d tokens at the end, want 1\n%s\n%s", f.arn, len(alive), f.log, s.history(f.arn))
		}
		s.checkSecrets(f)
	}
}

// checkSecrets: a task has its own secrets only, and logs none.
func (s *schedule) checkSecrets(f *faultyTask) {
	entries, err := os.ReadDir(filepath.Dir(f.file))
	if err != nil {
		s.errorf("%v", err)
	}
	texts := f.log.String()
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(f.file), e.Name()))
		if err != nil {
			s.errorf("%v", err)
		}
		if e.Name() != "token" {
			texts += string(data)
		}
	}
	token, _ := os.ReadFile(f.file)
	for _, made := range s.backend.made {
		stolen := string(token) == made.secret && made.task != f.arn
		if stolen || strings.Contains(texts, made.secret) {
			s.errorf("%s: secret %s is in a log or a file", f.arn, made.secret)
		}
	}
}

// history returns the lines of the audit log about a task.
func (s *schedule) history(arn string) string {
	var b strings.Builder
	for text := range strings.Lines(s.audit.String()) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.Task == arn {
			fmt.Fprintln(&b, l.Time.Format("04:05.000"), l.Request[:4], l.Accessor, l.Decision, l.Attempt, l.Rotation,
				l.Reason)
		}
	}
	return b.String()
}
