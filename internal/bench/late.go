package main

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	lateRuns = 15
	// lateBatch is how many of them wait at the same time: after a long wait mesh-init lets
	// other tasks go first.
	lateBatch = 3
	// outage is how long what is late is missing at least; the runs wait for it
	// together and get it one after the other.
	outage = 5 * time.Second
)

// lateness is one thing that mesh-init waits for.
type lateness struct {
	what, old, goal string
	login           bool
	// prepare returns the environment of a task, and how what it lacks appears.
	prepare func(l *late, t *task) (env []string, appear func() error, err error)
}

// late is the fixture of one lateness.
type late struct {
	*fixture
	c   *consul
	aws *cloud
}

// lateFigure measures from the moment at which what was missing is there to the end of mesh-init.
func lateFigure(s *fixture) ([]row, error) {
	var rows []row
	for _, k := range []lateness{
		{"agent answers, no login", "0.5 median", "0.4 median, 1.0 max", false, (*late).agent},
		{"servers answer, login", "", "0.4 median, 1.0 max", true, (*late).servers},
		{"CA file exists, login with TLS", "", "0.4 median, 1.0 max", true, (*late).caFile},
		{"auth method exists, login", "1.6", "below 1 median", true, (*late).authMethod},
	} {
		after, prompt, err := s.measureLate(k)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", k.what, err)
		}
		rows = append(rows, row{"mesh-init done after: " + k.what, seconds, k.old, k.goal, after,
			[]reference{{"there before: start to exit", prompt}}})
	}
	return rows, nil
}

func (s *fixture) measureLate(k lateness) (after, prompt sample, err error) {
	l := &late{fixture: s}
	if l.c, err = s.consul(k.login); err != nil {
		return nil, nil, err
	}
	if k.login {
		if l.aws, err = s.newCloud(l.c); err != nil {
			return nil, nil, err
		}
	}
	for remaining := s.harness.repeat(lateRuns); remaining > 0; remaining -= lateBatch {
		if err := l.measure(k, min(remaining, lateBatch), &after, &prompt); err != nil {
			return nil, nil, err
		}
	}
	return after, prompt, nil
}

// measure adds the times of n runs that wait for the same outage.
func (l *late) measure(k lateness, n int, after, prompt *sample) (err error) {
	waiting := make([]waiter, n)
	for i := range waiting {
		if waiting[i], err = l.start(k, false); err != nil {
			return err
		}
	}
	if err := l.pause(outage); err != nil {
		return err
	}
	for _, w := range waiting {
		appeared := time.Now()
		if err := w.appear(); err != nil {
			return err
		}
		if err := l.end(w, appeared, after); err != nil {
			return err
		}
		// The same with nothing missing.
		if w, err = l.start(k, true); err != nil {
			return err
		}
		if err := l.end(w, w.init.started, prompt); err != nil {
			return err
		}
	}
	return nil
}

// waiter is a mesh-init that lacks something.
type waiter struct {
	t      *task
	init   *child
	appear func() error
}

// start starts mesh-init; there means that nothing is missing.
func (l *late) start(k lateness, there bool) (waiter, error) {
	t, err := l.newTask("bench", workload.ContainerMeshInit, "app")
	if err != nil {
		return waiter{}, err
	}
	w := waiter{t: t}
	var env []string
	if env, w.appear, err = k.prepare(l, t); err != nil {
		return w, err
	}
	if env, err = l.aws.env(env, t); err != nil {
		return w, err
	}
	if there {
		if err := w.appear(); err != nil {
			return w, err
		}
	}
	w.init, err = l.fixture.start(env, l.harness.program, "mesh-init")
	return w, err
}

// end waits for the end, and adds the time since the moment.
func (l *late) end(w waiter, since time.Time, to *sample) error {
	if err := w.init.wait(); err != nil {
		return err
	}
	to.add(seconds.of(w.init.stopped.Sub(since)))
	return l.c.forget(w.t)
}

// closedAddress returns an address that refuses connections until it is opened.
func (l *late) closedAddress() (address string, open func() error, err error) {
	ports, err := testkit.FreePorts(1)
	if err != nil {
		return "", nil, err
	}
	address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	return address, func() error {
		_, err := l.serve(address, l.c.requests.proxy(l.c.HTTPAddr))
		return err
	}, nil
}

func (l *late) agent(t *task) ([]string, func() error, error) {
	address, open, err := l.closedAddress()
	if err != nil {
		return nil, nil, err
	}
	env, err := t.env(address, l.c, nil)
	return env, open, err
}

func (l *late) servers(t *task) ([]string, func() error, error) {
	address, open, err := l.closedAddress()
	if err != nil {
		return nil, nil, err
	}
	env, err := t.env(l.c.address, l.c, l.aws.configFor(address, authMethod))
	return env, open, err
}

func (l *late) caFile(t *task) ([]string, func() error, error) {
	server := httptest.NewTLSServer(l.c.requests.proxy(l.c.HTTPAddr))
	l.onClose(server.Close)
	path := filepath.Join(t.dir, "ca.pem")
	more := l.aws.configFor(server.URL, authMethod)
	more["consulCACertFile"] = path
	env, err := t.env(l.c.address, l.c, more)
	return env, func() error {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(path+".new", text, 0o644); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}, err
}

func (l *late) authMethod(t *task) ([]string, func() error, error) {
	method := "late-" + t.id
	env, err := t.env(l.c.address, l.c, l.aws.configFor(l.c.address, method))
	return env, func() error { return l.aws.createMethod(l.c, method) }, err
}
