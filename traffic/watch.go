package traffic

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// readEvery is the pause between two reads of the counters, startEvery before Envoy has first answered.
	readEvery  = 5 * time.Second
	startEvery = time.Second
	// startLimit is how long Envoy is expected to start. After it, it is asked every absentEvery.
	startLimit  = 2 * time.Minute
	absentEvery = 30 * time.Second
	// membersEvery is how often the upstreams' instances are read without a fault.
	membersEvery = 15 * time.Second
	// readTimeout bounds one read.
	readTimeout = 2 * time.Second
)

// Options say whose traffic is watched.
type Options struct {
	// Service is the task's name in Consul, Application the address at which its proxy reaches the application.
	Service, Application string
	// Upstreams are the names of the services that the task is configured to call.
	Upstreams []string
}

// Deps are what Watch acts through.
type Deps struct {
	// Ask returns Envoy's answer to a GET of a path at its admin address.
	Ask func(ctx context.Context, path string) ([]byte, error)
	Log hclog.Logger
}

// Watch logs what fails in the traffic of the task until ctx ends: a warning when a fault begins, another one every ten
// minutes while it lasts, and a line when it has ended. An Envoy that does not answer is no fault.
func Watch(ctx context.Context, o Options, d Deps) {
	w := watch{deps: d, start: time.Now(), monitor: monitor{
		service: o.Service, application: o.Application, upstreams: o.Upstreams, faults: map[subject]*fault{},
		empty: map[string]time.Time{},
	}}
	timer := time.NewTimer(w.read(ctx))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(w.read(ctx))
	}
}

type watch struct {
	deps    Deps
	monitor monitor
	start   time.Time
	// answered reports that Envoy has answered, and absent that it did not the last time.
	answered, absent bool
	// looked is when the members were last read.
	looked time.Time
}

// read reads the counters once, logs what is due, and returns the pause until the next read.
func (w *watch) read(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	counts, err := w.stats(ctx, "/stats?usedonly&type=Counters&filter="+url.QueryEscape(countersFilter))
	now := time.Now()
	if err != nil {
		return w.missed(now, err)
	}
	if !w.answered && !w.absent { // Envoy is older than this process
		w.monitor.restart(counts)
	}
	w.answered, w.absent = true, false
	for _, l := range w.monitor.observe(now, counts, w.members(ctx, now, counts)) {
		w.deps.Log.Log(l.level, l.text, l.args...)
	}
	return readEvery
}

// missed takes a read that has failed.
func (w *watch) missed(now time.Time, err error) time.Duration {
	if !w.absent {
		w.deps.Log.Debug("cannot read envoy's counters, faults of the traffic are not logged", logkey.Error, err)
	}
	w.absent = true
	switch {
	case w.answered:
		return readEvery
	case now.Sub(w.start) < startLimit:
		return startEvery
	}
	return absentEvery
}

// members reads the instances of the upstreams; nil when that is not due, or fails.
func (w *watch) members(ctx context.Context, now time.Time, counts map[string]uint64) map[string]members {
	names := w.monitor.lacking(counts)
	if len(names) == 0 {
		// Half a read early, as a pause may be shorter than asked for.
		if names = w.monitor.upstreams; now.Sub(w.looked) < membersEvery-readEvery/2 {
			return nil
		}
	}
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	if len(names) == 0 {
		return nil
	}
	w.looked = now
	filter := `^cluster\.(.*[.~])?(` + strings.Join(names, "|") + `)\..*\.membership_(healthy|total)$`
	gauges, err := w.stats(ctx, "/stats?type=Gauges&filter="+url.QueryEscape(filter))
	if err != nil {
		return nil
	}
	known := map[string]members{}
	for name, n := range gauges {
		cluster, what, _ := strings.Cut(strings.TrimPrefix(name, "cluster."), ".membership_")
		upstream, _ := serviceOf(cluster)
		m := known[upstream]
		if what == "healthy" {
			m.healthy += n
		} else {
			m.total += n
		}
		known[upstream] = m
	}
	return known
}

func (w *watch) stats(ctx context.Context, path string) (map[string]uint64, error) {
	answer, err := w.deps.Ask(ctx, path)
	if err != nil {
		return nil, err
	}
	return envoy.ParseStats(answer)
}
