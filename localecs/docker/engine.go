package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// DefaultAddress is where an engine is.
const DefaultAddress = "unix:///var/run/docker.sock"

// Labels of what is made in the engine.
const (
	labelRun = "localecs.run"
	labelDir = "localecs.dir"
)

// Options configure the use of an engine.
type Options struct {
	// Address is the engine's: unix://PATH, or DefaultAddress when empty.
	Address string
	// Dir is the state directory: what an earlier run with it has left is taken
	// away, so no other may use it at the same time.
	Dir string
	// Images are those made of programs of this host, by name. Others are the engine's, pulled when it has none.
	Images runtime.Images
	Log    hclog.Logger
}

// Engine runs containers. It is safe for concurrent use.
type Engine struct {
	*store
	options Options
	api     *client.Client
	// run is of this Engine, in names and labels.
	run     string
	watcher *Watcher

	// stop closes lost with a reason, which cause returns. Only the first counts.
	stop  context.CancelCauseFunc
	lost  <-chan struct{}
	cause func() error

	mu     sync.Mutex
	closed bool
	// limit is how long the engine may take to begin an answer.
	limit time.Duration
	// level is at which place of a process's numbers (NSpid) the engine's is.
	level   int
	pauses  map[uint64]*pause // by the inode of their network namespace
	running sync.WaitGroup    // containers that are watched
	limited atomic.Bool       // the engine may not raise limits above its own
}

// Open connects with an engine. The error is a *host.MissingError when this process or the engine lacks something.
func Open(o Options) (*Engine, error) {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	if err := CheckAddress(o.Address); err != nil {
		return nil, err
	}
	if err := host.CheckCaps("run containers in a Docker engine", "as root on the engine's host, or "+aside, host.NetAdmin(), host.SysAdmin(), host.SysPtrace(), host.Kill()); err != nil {
		return nil, err
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	api, err := newClient(o.Address, answerLimit)
	if err != nil {
		return nil, fmt.Errorf("create a client for the Docker engine at %s: %w", o.Address, err)
	}
	e := newEngine(o, api)
	if err := e.open(); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return e, nil
}

func newEngine(o Options, api *client.Client) *Engine {
	lost, stop := context.WithCancelCause(context.Background())
	return &Engine{
		options: o, api: api, run: strings.ToLower(rand.Text()[:12]),
		limit: answerLimit, store: newStore(api, o.Images, o.Log), pauses: map[uint64]*pause{},
		stop: stop, lost: lost.Done(), cause: func() error { return context.Cause(lost) },
	}
}

const (
	// answerTime is how long an engine may take to answer the first call.
	answerTime = 10 * time.Second
	// answerLimit is how long it may take to begin any other answer: it may be starting or removing many containers.
	answerLimit = 2 * time.Minute
)

func (e *Engine) open() error {
	ctx := context.Background()
	first, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := e.api.Ping(first, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return unreachable(e.options.Address, err)
	}
	if err := sweep(ctx, e.api, labelDir+"="+e.options.Dir); err != nil {
		return fmt.Errorf("remove what an earlier run has left in the Docker engine: %w", err)
	}
	var err error
	if e.watcher, err = watch(e.options.Address, labelRun+"="+e.run); err != nil {
		return err
	}
	go func() {
		<-e.watcher.Done()
		e.lose(errors.New("the process that removes the containers when this one is killed exited unexpectedly"))
	}()
	return nil
}

// aside is how to use an engine that is not on this machine, or not as root.
const aside = "in a container of that engine, as docs/localecs/how-to.md shows"

// CheckAddress reports what is wrong with an engine's address.
func CheckAddress(address string) error {
	if address != "" && !strings.HasPrefix(address, "unix://") {
		return fmt.Errorf("the Docker engine at %s: localecs makes the tasks' network itself and has to run on the engine's host, where its address is unix://PATH; or %s", address, aside)
	}
	return nil
}

func unreachable(address string, err error) error {
	instead := "start one there, or name another one by DOCKER_HOST"
	if errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "permission denied") {
		instead = "run localecs as root"
	}
	return &host.MissingError{What: "connect to the Docker engine", Need: "one that answers at " + address, Instead: instead, Err: err}
}

// Lost returns a channel that is closed when no container can run any more: the engine does not answer,
// or the watcher was killed. Err is the reason.
func (e *Engine) Lost() <-chan struct{} { return e.lost }

// Err returns why no container can run any more; nil as long as they can.
func (e *Engine) Err() error { return e.cause() }

// lose ends it for a reason, unless it is closed.
func (e *Engine) lose(err error) {
	if e.serving() == nil {
		e.stop(err)
	}
}

// Close removes every container and volume of this Engine, and waits until they are gone.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if !first {
		return nil
	}
	err := sweep(context.Background(), e.api, labelRun+"="+e.run)
	if err != nil {
		err = fmt.Errorf("remove containers from the Docker engine: %w", err)
	}
	e.running.Wait()
	return errors.Join(err, e.watcher.Close(), e.api.Close(), os.RemoveAll(filepath.Join(e.options.Dir, filesDir)))
}

// serving returns ErrClosed after Close.
func (e *Engine) serving() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return runtime.ErrClosed
	}
	return nil
}

func (e *Engine) labels() map[string]string {
	return map[string]string{labelRun: e.run, labelDir: e.options.Dir}
}

func (e *Engine) name(parts ...string) string {
	return "localecs-" + e.run + "-" + strings.Map(allowedRune, strings.Join(parts, "-"))
}
