package metrics

import (
	"bytes"
	"math"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const golden = `# HELP passes_total Passes by their result.
# TYPE passes_total counter
passes_total{result="error"} 1
passes_total{result="ok"} 2.5
# HELP leader 1 on the leader.
# TYPE leader gauge
leader 1
# HELP odd Backslash \\ and line\nend.
# TYPE odd gauge
odd{a="q\"\\\n",b=""} -3e+20
# HELP pass_seconds Seconds of a pass.
# TYPE pass_seconds histogram
pass_seconds_bucket{le="0.1"} 1
pass_seconds_bucket{le="1"} 3
pass_seconds_bucket{le="+Inf"} 4
pass_seconds_sum 62.05
pass_seconds_count 4
# HELP never_total Never counted.
# TYPE never_total counter
never_total 0
`

func sample() *Set {
	var s Set
	passes := s.Counter("passes_total", "Passes by their result.", "result")
	passes.Add(1, "ok")
	passes.Add(1, "error")
	passes.Add(1.5, "ok")
	leader := s.Gauge("leader", "1 on the leader.")
	leader.Set(7)
	leader.Set(1)
	s.Gauge("odd", "Backslash \\ and line\nend.", "a", "b").Set(-3e20, "q\"\\\n", "")
	h := s.Histogram("pass_seconds", "Seconds of a pass.", 0.1, 1)
	for _, v := range []float64{0.05, 1, 1, 60} {
		h.Observe(v)
	}
	s.Counter("never_total", "Never counted.")
	return &s
}

func TestText(t *testing.T) {
	t.Parallel()
	if got := string(sample().text()); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
}

// parse reads a text as Prometheus does.
func parse(t testing.TB, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("Prometheus cannot read it: %v\n%s", err, text)
	}
	return families
}

// TestPrometheusReadsIt: its own parser finds the same values.
func TestPrometheusReadsIt(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	sample().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if got := w.Header().Get("Content-Type"); got != contentType {
		t.Errorf("content type %q", got)
	}
	f := parse(t, w.Body.Bytes())
	if len(f) != 5 {
		t.Errorf("%d families, want 5", len(f))
	}
	passes := f["passes_total"]
	if passes.GetType() != dto.MetricType_COUNTER || len(passes.Metric) != 2 {
		t.Fatalf("passes %v, want a counter with 2 series", passes)
	}
	if ok := passes.Metric[1]; ok.GetCounter().GetValue() != 2.5 || ok.Label[0].GetValue() != "ok" {
		t.Errorf("second series of passes is %v, want 2.5 of ok", ok)
	}
	if f["leader"].Metric[0].GetGauge().GetValue() != 1 {
		t.Errorf("leader %v", f["leader"])
	}
	odd := f["odd"].Metric[0]
	got := []any{odd.Label[0].GetValue(), odd.Label[1].GetValue(), odd.GetGauge().GetValue(), f["odd"].GetHelp()}
	want := []any{"q\"\\\n", "", -3e20, "Backslash \\ and line\nend."}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("odd (-want +got):\n%s", d)
	}
	h := f["pass_seconds"].Metric[0].GetHistogram()
	if h.GetSampleCount() != 4 || h.GetSampleSum() != 62.05 {
		t.Errorf("histogram %v, want 4 samples with the sum 62.05", h)
	}
	if len(h.Bucket) != 3 {
		t.Fatalf("histogram %v, want 3 buckets", h)
	}
	if h.Bucket[1].GetCumulativeCount() != 3 || !math.IsInf(h.Bucket[2].GetUpperBound(), 1) {
		t.Errorf("histogram %v, want 3 in the second bucket and an endless third", h)
	}
}

// TestReplace: what is no more is 0, not what it was.
func TestReplace(t *testing.T) {
	t.Parallel()
	var s Set
	g := s.Gauge("kept", "Kept tasks.", "why")
	g.Replace(map[string]float64{"young": 2, "unknown": 1})
	g.Replace(map[string]float64{"young": 3})
	const want = "# HELP kept Kept tasks.\n# TYPE kept gauge\nkept{why=\"unknown\"} 0\nkept{why=\"young\"} 3\n"
	if got := string(s.text()); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestWrongLabels(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a label without a name was taken")
		}
	}()
	var s Set
	s.Counter("x_total", "X.", "a").Add(1)
}

// FuzzLabels: no label value and no help breaks the form.
func FuzzLabels(f *testing.F) {
	f.Add("help", "value", 1.0)
	f.Add("a\nb\\", "\"}\n# x", math.Inf(-1))
	f.Fuzz(func(t *testing.T, help, value string, v float64) {
		var s Set
		s.Gauge("x", help, "label").Set(v, value)
		if !model.LabelValue(value).IsValid() {
			t.Skip("not UTF-8")
		}
		m := parse(t, s.text())["x"].Metric[0]
		got, want := []any{m.Label[0].GetValue(), m.GetGauge().GetValue()}, []any{value, v}
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}
