// Package metrics is what a long-running command counts, in the text form that
// Prometheus reads (version 0.0.4). It has what our commands need and no more:
// the usual library is 2.3 MB of every task's binary (docs/ARCHITECTURE.md).
//
// Flow: 1. a Set makes counters, gauges and histograms; 2. the command changes
// them; 3. the Set, an http.Handler, answers with all of them.
//
// Owns: the form, which a test reads back with Prometheus's own parser.
// Never does: register anything on its own, or drop a label.
// Start reading at: Set.
package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// contentType is that of a Set's text.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Set is a group of metrics, shown in the order in which they were made. It and
// its metrics are safe for concurrent use.
type Set struct {
	// Prefix begins every name.
	Prefix string

	mu       sync.Mutex
	families []*family
}

// family is one metric with all its labels.
type family struct {
	name, help, kind string
	labels           []string
	bounds           []float64
	series           map[string]*series // by the text of its labels
}

// series is one line, or a histogram's.
type series struct {
	value  float64 // a histogram's sum
	counts []uint64
	count  uint64
}

// Value is a counter or a gauge.
type Value struct {
	set *Set
	f   *family
}

// Histogram counts values by their size.
type Histogram Value

// Counter makes a metric that only grows. Its name ends in _total; help is a
// sentence with the unit.
func (s *Set) Counter(name, help string, labels ...string) *Value {
	return &Value{s, s.add(&family{name: s.Prefix + name, help: help, kind: "counter", labels: labels})}
}

// Gauge makes a metric that goes up and down.
func (s *Set) Gauge(name, help string, labels ...string) *Value {
	return &Value{s, s.add(&family{name: s.Prefix + name, help: help, kind: "gauge", labels: labels})}
}

// Histogram makes a histogram; bounds are the upper ends of its buckets, rising.
func (s *Set) Histogram(name, help string, bounds ...float64) *Histogram {
	return &Histogram{s, s.add(&family{name: s.Prefix + name, help: help, kind: "histogram", bounds: bounds})}
}

func (s *Set) add(f *family) *family {
	f.series = map[string]*series{}
	if len(f.labels) == 0 {
		f.of(nil) // shown before it is counted: a rate needs the zero
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.families = append(s.families, f)
	return f
}

// of returns the series of these label values, one for each label.
func (f *family) of(values []string) *series {
	if len(values) != len(f.labels) {
		panic(fmt.Sprintf("metric %s has labels %q, got %q", f.name, f.labels, values))
	}
	var b strings.Builder
	for i, label := range f.labels {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, label, escape(values[i], `"`))
	}
	key := b.String()
	if f.series[key] == nil {
		f.series[key] = &series{counts: make([]uint64, len(f.bounds))}
	}
	return f.series[key]
}

// Add adds to the series of the label values; a counter takes nothing below 0.
func (v *Value) Add(delta float64, labels ...string) {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.f.of(labels).value += delta
}

// Set replaces the value of a gauge's series.
func (v *Value) Set(value float64, labels ...string) {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.f.of(labels).value = value
}

// Replace gives a gauge with one label these series; others become 0.
func (v *Value) Replace(values map[string]float64) {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	for _, s := range v.f.series {
		s.value = 0
	}
	for label, value := range values {
		v.f.of([]string{label}).value = value
	}
}

// Observe counts one value.
func (h *Histogram) Observe(value float64) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	s := h.f.of(nil)
	s.value += value
	s.count++
	for i, bound := range h.f.bounds {
		if value <= bound {
			s.counts[i]++
		}
	}
}

// text returns all metrics as they are now.
func (s *Set) text() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	for _, f := range s.families {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, escape(f.help, ""), f.name, f.kind)
		for _, labels := range slices.Sorted(maps.Keys(f.series)) {
			f.write(&b, labels, f.series[labels])
		}
	}
	return b.Bytes()
}

func (f *family) write(b *bytes.Buffer, labels string, s *series) {
	if f.kind != "histogram" {
		if labels != "" {
			labels = "{" + labels + "}"
		}
		fmt.Fprintf(b, "%s%s %s\n", f.name, labels, number(s.value))
		return
	}
	for i, bound := range f.bounds {
		fmt.Fprintf(b, "%s_bucket{le=\"%s\"} %d\n", f.name, number(bound), s.counts[i])
	}
	fmt.Fprintf(b, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %s\n%s_count %d\n", f.name, s.count, f.name, number(s.value),
		f.name, s.count)
}

// ServeHTTP implements http.Handler.
func (s *Set) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", contentType)
	w.Write(s.text())
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// escape escapes what would end a line, and the quote.
func escape(text, quote string) string {
	pairs := []string{`\`, `\\`, "\n", `\n`}
	if quote != "" {
		pairs = append(pairs, quote, `\`+quote)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
