package scenario

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// steps carries out the steps in order; the first that fails ends them.
func (r *runner) steps(ctx context.Context) error {
	for i, s := range r.file.Steps {
		end := r.beginStep(i+1, s)
		err := r.step(ctx, s)
		if err != nil {
			err = fmt.Errorf("step %d: %w", i+1, r.because(err))
		}
		end(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// because adds to an error the task that is stopping without having been asked:
// a refused connection has its reason there.
func (r *runner) because(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		t := r.tasks[name]
		v := t.task.View()
		if t.asked || v.DesiredStatus != scheduler.StatusStopped || strings.Contains(err.Error(), "task "+name+" ended") {
			continue
		}
		err = fmt.Errorf("%w; task %s ended by itself: %s", err, name, r.whyEnded(name, v))
	}
	return err
}

func (r *runner) step(ctx context.Context, s file.Step) error {
	switch {
	case s.Start != nil:
		return r.start(s.Start)
	case s.Stop != nil:
		return r.stop(ctx, s.Stop)
	case s.Await != nil:
		return r.await(ctx, *s.Await)
	case s.MTLS != nil:
		return r.mtls(ctx, *s.MTLS)
	case s.Post != nil:
		return r.post(ctx, *s.Post)
	case s.Traffic != nil:
		return r.startTraffic(ctx, *s.Traffic)
	default:
		r.traffic.Stop()
		answered, failed, _ := r.traffic.Totals()
		r.tell(progress.Event{Kind: progress.TrafficEnd, Text: fmt.Sprintf("ended: %d answered, %d failed", answered, failed)})
		return nil
	}
}

func (r *runner) start(names []string) error {
	for _, name := range names {
		task, err := r.cluster.Run(name, r.tasks[name].def)
		if err != nil {
			return &hostError{fmt.Errorf("start %s: %w", name, err)}
		}
		r.mu.Lock()
		r.tasks[name].task = task
		r.names = append(r.names, name)
		r.mu.Unlock()
		r.tell(progress.Event{Kind: progress.Task, Task: name, TaskID: task.ID(), Address: task.IP(), Text: "task " + task.ID() + " at " + task.IP()})
	}
	return nil
}

// stop stops the tasks side by side and waits until they are STOPPED and
// nothing of them is left in Consul.
func (r *runner) stop(ctx context.Context, names []string) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			if err := r.stopOne(ctx, name); err != nil {
				errs[i] = fmt.Errorf("stop %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *runner) stopOne(ctx context.Context, name string) error {
	t := r.tasks[name]
	r.mu.Lock()
	t.asked = true
	r.mu.Unlock()
	t.task.Stop(scheduler.StopUserInitiated, "Task stopped by user")
	select {
	case <-t.task.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, clearLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	problem := "nobody has looked"
	for {
		found, err := server.Left(ctx, r.client, t.task.ID(), r.file.Checks.NoTokensOf, r.file.Checks.NoServices)
		switch {
		case err == nil && len(found) == 0:
			now := time.Now()
			r.mu.Lock()
			t.moments.LeftNothing(now)
			r.mu.Unlock()
			r.tell(progress.Event{Time: now, Kind: progress.Cleared, Task: name, Text: "nothing left of the task"})
			return nil
		case err == nil:
			problem = strings.Join(found, ", ")
		case ctx.Err() == nil:
			problem = err.Error()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("still in Consul after %s: %s", clearLimit, problem)
		}
	}
}

func (r *runner) await(ctx context.Context, a file.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	ctx, release := r.whileTasksRun(ctx)
	defer release()
	switch {
	case a.Service != "":
		err := r.watch.Until(ctx, func(checks server.Checks) bool {
			return r.passing(checks, a.Service) >= a.Passing
		})
		return r.awaited(err, fmt.Sprintf("%d passing instances of %s within %s", a.Passing, a.Service, a.Within))
	case a.Task != "":
		id := r.tasks[a.Task].task.ID()
		err := r.watch.Until(ctx, func(checks server.Checks) bool { return checks.Status(id, a.Container) == a.Status })
		return r.awaited(err, fmt.Sprintf("check of container %s in %s to be %s within %s", a.Container, a.Task, a.Status, a.Within))
	default:
		return r.awaitRequests(ctx, a.Requests)
	}
}

// whileTasksRun ends the context when a started task ends that no step has
// asked to stop: what is awaited will not come then.
func (r *runner) whileTasksRun(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var watching sync.WaitGroup
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.tasks {
		if t.task == nil || t.asked {
			continue
		}
		watching.Go(func() {
			select {
			case <-t.task.Done():
				cancel(fmt.Errorf("task %s ended by itself: %s", name, r.whyEnded(name, t.task.View())))
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() {
		cancel(context.Canceled)
		watching.Wait()
	}
}

// whyEnded is ECS's reason for a task's end, then the first container that
// failed with its last word.
func (r *runner) whyEnded(name string, v scheduler.View) string {
	why := brief(v.StopCode + ": " + v.StoppedReason)
	var first *scheduler.ContainerView
	for i, c := range v.Containers {
		// One that never started may have a code, too: ECS gives it 143.
		if !c.StartedAt.IsZero() && c.ExitCode != nil && *c.ExitCode != 0 && (first == nil || c.FinishedAt.Before(first.FinishedAt)) {
			first = &v.Containers[i]
		}
	}
	if first == nil {
		return why
	}
	return fmt.Sprintf("%s; %s exited with %d: %s", why, first.Name, *first.ExitCode, lastLine(r.cluster.LogFile(name, first.Name)))
}

func (r *runner) awaited(err error, what string) error {
	if err != nil {
		return fmt.Errorf("await %s: %w", what, err)
	}
	return nil
}

// passing counts the tasks of a service that Consul sends traffic to.
func (r *runner) passing(checks server.Checks, service string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.tasks {
		if t.task != nil && t.def.Family == service && checks.InTraffic(t.task.ID()) {
			n++
		}
	}
	return n
}

func (r *runner) awaitRequests(ctx context.Context, n int) error {
	if r.traffic == nil {
		return errors.New("await requests: no traffic was started")
	}
	before, _, _ := r.traffic.Totals()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, _, _ := r.traffic.Totals(); now-before >= n {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("await %d answered requests: %w", n, context.Cause(ctx))
		}
	}
}

// mtls looks at the listener from outside the mesh: who does it say it is, and
// does it serve somebody without a certificate?
func (r *runner) mtls(ctx context.Context, m file.MTLS) error {
	address := net.JoinHostPort(r.tasks[m.Task].task.IP(), fmt.Sprint(m.Port))
	raw, err := r.cluster.Dial(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("mtls: %w", err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(5 * time.Second))
	var peer *x509.Certificate
	conn := tls.Client(raw, &tls.Config{
		// The chain is Consul's own; the identity in it is what is looked at.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			peer = s.PeerCertificates[0]
			return nil
		},
	})
	// TLS 1.3: the refusal may come only with the first read.
	_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if peer == nil {
		return fmt.Errorf("mtls: %s does not speak TLS: %w", m.Task, err)
	}
	identity := ""
	if len(peer.URIs) > 0 {
		identity = peer.URIs[0].String()
	}
	if !strings.HasSuffix(identity, "/svc/"+m.Service) {
		return fmt.Errorf("mtls: %s presents %q, not service %s", m.Task, identity, m.Service)
	}
	if err == nil {
		return fmt.Errorf("mtls: %s served a caller without a certificate", m.Task)
	}
	r.tell(progress.Event{Kind: progress.MTLS, Task: m.Task, Text: "presents " + identity + "; refuses a caller without a certificate"})
	return nil
}

func (r *runner) post(ctx context.Context, p file.Post) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: r.tasks[p.Task].task.Dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, nil)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("post in %s: %w", p.Task, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("post %s in %s: %s", p.URL, p.Task, resp.Status)
	}
	r.tell(progress.Event{Kind: progress.Post, Task: p.Task, Text: "POST " + p.URL})
	return nil
}

// maxTold is how many lost requests get a line of their own.
const maxTold = 10

func (r *runner) startTraffic(ctx context.Context, t file.Traffic) error {
	url := fmt.Sprintf("http://%s/", net.JoinHostPort(r.tasks[t.Task].task.IP(), fmt.Sprint(t.Port)))
	var told atomic.Int64
	r.traffic = traffic.New(url, r.cluster.Dial, func(f traffic.Failure) {
		e := progress.Event{Time: f.At, Kind: progress.RequestFailed, Detail: f.Err, Text: "FAILED: " + f.Err}
		n := told.Add(1)
		if n == maxTold {
			e.Text += " (more are counted only)"
		}
		if n <= maxTold {
			r.tell(e)
		}
	})
	r.shown.Store(r.traffic)
	start := time.Now()
	if err := r.traffic.AwaitFirst(ctx); err != nil {
		return fmt.Errorf("traffic: no answer from %s within %s: %w", url, traffic.FirstAnswerLimit, err)
	}
	r.tell(progress.Event{
		Kind: progress.TrafficBegin, Task: t.Task, Address: url,
		Text: fmt.Sprintf("first answer after %s; now %d requests a second to %s, no retries", time.Since(start).Round(time.Millisecond), t.Rate, url),
	})
	r.traffic.Start(ctx, t.Rate)
	return nil
}
