package broker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// faultyTask is a task with a receiver and an application.
type faultyTask struct {
	s        *schedule
	arn, ip  string
	file     string
	log      *buffer
	mu       sync.Mutex
	receiver *receiverProcess
	stopping bool
	// crashes is odd while a killed process ends, which changes files that are then put back.
	crashes atomic.Int32
}

// receiverProcess is one process of token-receive.
type receiverProcess struct {
	task *faultyTask
	dead atomic.Bool
	stop context.CancelFunc
	done chan struct{}
}

// step may kill the process.
func (r *receiverProcess) step() error {
	c := r.task.s.chance
	if !r.dead.Load() && c.oneIn(300) {
		go r.task.crash(r)
		r.dead.Store(true)
	}
	if r.dead.Load() {
		return errKilled
	}
	return nil
}

// start starts a process. The caller holds mu, or nothing else has the task.
func (f *faultyTask) start() {
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiverProcess{task: f, stop: cancel, done: make(chan struct{})}
	f.receiver = r
	broker, err := receiver.NewClient(receiver.ClientOptions{Address: "https://broker", Transport: r})
	if err != nil {
		f.s.errorf("%v", err)
	}
	options := receiver.Options{File: f.file, Port: 8080, Limit: faultTime, Stay: true,
		StopTimeout: taskdef.DefaultStopTimeout * time.Second}
	holder := receiver.TokenActions{Alive: r.alive}
	if f.s.login {
		holder.Revoke = r.revoke
	}
	go func() {
		defer close(r.done)
		log := hclog.New(&hclog.LoggerOptions{Output: f.log, Level: hclog.Debug})
		err := receiver.Run(ctx, options, receiver.Deps{
			FirstTask: func(ctx context.Context, limit time.Duration) (workload.Task, error) {
				return awsutil.FirstTask(ctx, log, r.Task, limit)
			},
			Self: func() string { return "token-receive" }, Client: broker, Listen: r.listen,
			Actions: map[string]receiver.TokenActions{"fake": holder},
			AwaitStopped: func(ctx context.Context, which func(workload.Task) []workload.Container) ([]string, error) {
				return awsutil.AwaitStopped(ctx, log, r.Task, awsutil.AwaitPause, which)
			},
			Log: log,
		})
		stopped := ctx.Err() != nil || r.dead.Load()
		if err == nil || stopped {
			return
		}
		if !f.exhausted(err) {
			f.s.errorf("the receiver of %s ended: %v", f.arn, err)
		}
	}()
}

// exhausted reports whether the receiver gave up because it had lost as many tokens as the broker
// replaces, and then ends the task.
func (f *faultyTask) exhausted(err error) bool {
	refused, ok := errors.AsType[*receiver.RefusedError](err)
	if !ok || refused.Code != "regrants" {
		return false
	}
	f.s.mu.Lock()
	granted := f.s.granted[f.arn]
	f.s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	return granted > maxRegrants
}

// crash ends a process as SIGKILL does: the files stay as they are. The container is
// started again.
func (f *faultyTask) crash(r *receiverProcess) {
	r.dead.Store(true)
	left := map[string][]byte{}
	for _, name := range []string{f.file, f.file + ".json"} {
		if data, err := os.ReadFile(name); err == nil {
			left[name] = data
		}
	}
	f.crashes.Add(1)
	r.stop()
	<-r.done
	for name, data := range left {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			f.s.errorf("%v", err)
		}
	}
	f.crashes.Add(1)
	f.s.chance.pause(2 * time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopping {
		f.start()
	}
}

// end stops the task in order; kill, if set, without.
func (f *faultyTask) end() {
	f.mu.Lock()
	f.stopping = true
	r := f.receiver
	f.mu.Unlock()
	r.stop()
	<-r.done
}

func (f *faultyTask) kill() {
	f.mu.Lock()
	f.stopping = true
	r := f.receiver
	f.mu.Unlock()
	r.dead.Store(true)
	r.stop()
	<-r.done
	_ = os.Remove(f.file) // with the task's volume
}

func (f *faultyTask) ending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopping
}

func (r *receiverProcess) Task(context.Context) (workload.Task, error) {
	status := "RUNNING"
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if r.task.stopping || r.dead.Load() {
		status = "STOPPED"
	}
	return workload.Task{TaskARN: r.task.arn, Cluster: clusterARN, Containers: []workload.Container{
		{Name: "token-receive", DesiredStatus: "RUNNING", KnownStatus: "RUNNING"}, {Name: "app", DesiredStatus: status,
			KnownStatus: status},
	}}, nil
}

func (r *receiverProcess) listen(context.Context, int) (net.Listener, error) {
	if r.step() != nil {
		return nil, errKilled
	}
	s, address := r.task.s, r.task.ip+":8080"
	p := newPort(func(p *port) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ports[address] == p {
			delete(s.ports, address)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[address] = p
	return p, nil
}

func (r *receiverProcess) alive(_ context.Context, token secret.Value) (bool, error) {
	if r.step() != nil || r.task.s.chance.of(20) {
		return false, transient()
	}
	return slices.Contains(r.task.s.backend.alive(r.task.arn), token.Reveal()), nil
}

func (r *receiverProcess) revoke(_ context.Context, token secret.Value) error {
	if r.dead.Load() {
		return &retry.PermanentError{Err: errKilled}
	}
	if r.task.s.chance.of(20) {
		return transient()
	}
	r.task.s.forget(token.Reveal())
	return nil
}

func (s *schedule) orphan(accessor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orphans[accessor] = true
}

func (s *schedule) exists(accessor string) bool {
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	_, ok := s.backend.tokens[accessor]
	return ok
}

// liveTokens counts the tokens of a task that some process can revoke. The caller holds mu.
func (s *schedule) liveTokens(f *faultyTask) int {
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	n := 0
	for accessor, m := range s.backend.tokens {
		if live := m.task == f.arn && m.lives(); live && !s.orphans[accessor] {
			n++
		}
	}
	return n
}

// forget logs a token out.
func (s *schedule) forget(token string) {
	s.backend.mu.Lock()
	defer s.backend.mu.Unlock()
	for accessor, m := range s.backend.tokens {
		if m.secret == token {
			delete(s.backend.tokens, accessor)
		}
	}
}

// recorded is a push that is sent again later.
type recorded struct {
	at      time.Time
	address string
	request []byte
}

// again sends a push again, to the task that has the address now.
func (s *schedule) again(push recorded) {
	ctx, cancel := context.WithTimeout(context.Background(), pushLimit)
	defer cancel()
	conn, err := s.connect(ctx, push.address)
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Write(push.request); err != nil {
		return
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if accepted := err == nil && answer.StatusCode == http.StatusOK; accepted && time.Since(push.at) > handleTTL {
		s.errorf("a push of %s was accepted again", push.at)
	}
}

func (c brokenConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if stepErr := c.p.step(); stepErr != nil || c.p.s.chance.of(15) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
