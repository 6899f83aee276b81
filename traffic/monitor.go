package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// quiet is how long nothing must have failed for a fault to end, and the least time between two warnings of it.
	quiet = time.Minute
	// remindEvery is how often a fault that lasts is logged again.
	remindEvery = 10 * time.Minute
	// emptyFor is how long an upstream without calls may have no healthy instance: services start together.
	emptyFor = 45 * time.Second
)

// subject is what fails, and with whom.
type subject struct {
	kind *kind
	peer string
}

// fault is what is known about a subject.
type fault struct {
	first, last time.Time // of its events; first also of a state
	warned      time.Time
	open        bool
	count       uint64
	reasons     map[string]uint64
}

// members are the instances of an upstream that Envoy knows.
type members struct{ healthy, total uint64 }

// line is what is to be logged.
type line struct {
	level hclog.Level
	text  string
	args  []any
}

// monitor finds the faults in what an Envoy counts. It has no clock.
type monitor struct {
	service, application string
	// upstreams are those that are configured.
	upstreams []string

	last   map[string]uint64
	faults map[subject]*fault
	// members are the last known ones by upstream, and empty has since when one has no healthy instance.
	members map[string]members
	empty   map[string]time.Time
}

// restart takes the counts of an Envoy that ran before this process as seen.
func (m *monitor) restart(counts map[string]uint64) { m.last = counts }

// observe compares counts with the last ones, and returns what is to be logged. known is nil when the members were
// not read.
func (m *monitor) observe(now time.Time, counts map[string]uint64, known map[string]members) []line {
	for s, reasons := range m.events(counts) {
		f := m.fault(now, s)
		for reason, n := range reasons {
			f.count += n
			f.reasons[reason] += n
		}
		f.last = now
	}
	if known != nil {
		m.look(now, known)
	}
	var lines []line
	for _, s := range slices.SortedFunc(maps.Keys(m.faults), func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.kind.id, b.kind.id), cmp.Compare(a.peer, b.peer))
	}) {
		lines = append(lines, m.advance(now, s)...)
	}
	return lines
}

// events returns what has happened since the last read, by reason.
func (m *monitor) events(counts map[string]uint64) map[subject]map[string]uint64 {
	all := map[subject]map[string]uint64{}
	for name, n := range counts {
		if before := m.last[name]; before <= n { // else Envoy was started again
			n -= before
		}
		c, ok := classify(name)
		if n == 0 || !ok {
			continue
		}
		s := subject{c.kind, c.peer}
		if all[s] == nil {
			all[s] = map[string]uint64{}
		}
		all[s][c.reason] += n
	}
	m.last = counts
	// A connection that times out, or whose handshake fails, is counted as one that fails, too.
	for s, reasons := range all {
		if s.kind != noConnection && s.kind != appRefused {
			continue
		}
		others := reasons[reasonTimedOut]
		for _, n := range all[subject{upstreamTLS, s.peer}] {
			others += n
		}
		if reasons[reasonRefused] -= min(others, reasons[reasonRefused]); reasons[reasonRefused] == 0 {
			delete(reasons, reasonRefused)
		}
		if len(reasons) == 0 {
			delete(all, s)
		}
	}
	return all
}

// fault returns the fault of a subject for more of its events.
func (m *monitor) fault(now time.Time, s subject) *fault {
	f := m.faults[s]
	if f == nil {
		f = &fault{first: now, reasons: map[string]uint64{}}
		m.faults[s] = f
	}
	if !f.open && now.Sub(f.last) >= quiet || f.count == 0 && !f.open {
		f.first, f.count = now, 0
		clear(f.reasons)
	}
	return f
}

// look takes what Envoy knows of the upstreams' instances.
func (m *monitor) look(now time.Time, known map[string]members) {
	m.members = known
	for _, name := range slices.Concat(m.upstreams, slices.Collect(maps.Keys(m.empty))) {
		known, ok := known[name]
		switch since, empty := m.empty[name]; {
		case !ok || known.healthy > 0:
			delete(m.empty, name)
		case !empty:
			m.empty[name] = now
		case now.Sub(since) >= emptyFor && m.faults[subject{noInstance, name}] == nil:
			m.faults[subject{noInstance, name}] = &fault{first: since, reasons: map[string]uint64{}}
		}
	}
}

// advance decides what is due for a fault, and drops it when it is over.
func (m *monitor) advance(now time.Time, s subject) []line {
	f := m.faults[s]
	over, warned := m.isOver(now, s), now.Sub(f.warned)
	switch {
	case f.open && over:
		lines := []line{m.ended(s, f)}
		f.open, f.count = false, 0
		return lines
	case f.open && warned >= remindEvery, !f.open && warned >= quiet && m.begins(now, s):
		f.open, f.warned = true, now
		return []line{m.warning(s, f)}
	case !f.open && over && warned >= quiet:
		delete(m.faults, s)
	}
	return nil
}

// isOver reports whether nothing fails any more.
func (m *monitor) isOver(now time.Time, s subject) bool {
	f := m.faults[s]
	if s.kind != noInstance {
		return now.Sub(f.last) >= quiet
	}
	known, ok := m.members[s.peer]
	lacking := ok && known.healthy == 0
	return !lacking && now.After(f.last) && (f.open || now.Sub(f.last) >= quiet)
}

// begins reports whether there is enough for a warning.
func (m *monitor) begins(now time.Time, s subject) bool {
	since, empty := m.empty[s.peer]
	return m.faults[s].count >= s.kind.least || s.kind == noInstance && empty && now.Sub(since) >= emptyFor
}

func (m *monitor) warning(s subject, f *fault) line {
	what, fix := s.kind.texts()
	args := m.args(s, f)
	if known, ok := m.members[s.peer]; ok && s.kind == noInstance {
		args = append(args, logkey.Instances, known.total)
	}
	if reason := f.reason(); reason != "" {
		args = append(args, logkey.Reason, reason)
	}
	return line{hclog.Warn, what, append(args, logkey.Fix, fix, logkey.ID, string(s.kind.id))}
}

func (m *monitor) ended(s subject, f *fault) line {
	what, _ := s.kind.texts()
	return line{hclog.Info, "ended: " + what, m.args(s, f)}
}

// args returns the keys that say with whom traffic fails, how often and since when.
func (m *monitor) args(s subject, f *fault) []any {
	args := []any{logkey.Upstream, s.peer}
	switch s.peer {
	case callers:
		args = []any{logkey.ServiceName, m.service}
	case application:
		args = []any{logkey.ServiceName, m.service, logkey.Address, m.application}
	}
	return append(args, logkey.Count, f.count, logkey.Since, f.first.UTC().Format(time.RFC3339))
}

// reason returns the reasons, the most frequent one first, with their counts where there are several.
func (f *fault) reason() string {
	var texts []string
	for _, reason := range slices.SortedFunc(maps.Keys(f.reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.reasons[b], f.reasons[a]), cmp.Compare(a, b))
	}) {
		switch {
		case reason == "":
		case len(f.reasons) == 1:
			texts = append(texts, reason)
		default:
			texts = append(texts, fmt.Sprintf("%d %s", f.reasons[reason], reason))
		}
	}
	return strings.Join(texts, ", ")
}

// lacking returns the upstreams to look at now, the configured ones included, because calls have found no instance or
// because one is waited for.
func (m *monitor) lacking(counts map[string]uint64) []string {
	names := map[string]bool{}
	for name, n := range counts {
		if c, ok := classify(name); ok && c.kind == noInstance && n != m.last[name] {
			names[c.peer] = true
		}
	}
	for s, f := range m.faults {
		if s.kind == noInstance && f.open {
			names[s.peer] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	return slices.Sorted(func(yield func(string) bool) {
		for _, name := range m.upstreams {
			names[name] = true
		}
		maps.Keys(names)(yield)
	})
}
