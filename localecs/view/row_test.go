package view

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"healthy", 7, "healthy"},
		{"unhealthy", 7, "unheal…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"},
		{"x", 0, "…"},
	} {
		if got := (row{{c.text, plain}}).cut(c.width).encode(false); got != c.want {
			t.Errorf("%q in %d cells: got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestCutGoesThroughSpans(t *testing.T) {
	t.Parallel()
	r := row{{"api ", plain}, {"unhealthy", bad}, {"  web ", plain}, {"healthy", good}}
	for width, want := range map[int]string{
		26: "api \x1b[31munhealthy\x1b[0m  web \x1b[32mhealthy\x1b[0m",
		14: "api \x1b[31munhealthy\x1b[0m…",
		8:  "api \x1b[31munh\x1b[0m…",
	} {
		if got := r.cut(width).encode(true); got != want {
			t.Errorf("%d cells: got %q, want %q", width, got, want)
		}
	}
}

func TestTheTimeStaysWhenTheStepIsCut(t *testing.T) {
	t.Parallel()
	left, tail := row{{"step 1 of 2: await what never comes", plain}}, row{{", 3 s of 90 s", plain}}
	for width, want := range map[int]string{
		60: "step 1 of 2: await what never comes, 3 s of 90 s",
		30: "step 1 of 2: awa…, 3 s of 90 s",
		20: "step 1 of 2: await …",
	} {
		if got := ending(left, tail, width).encode(false); got != want {
			t.Errorf("%d cells: got %q, want %q", width, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, state := range []string{
		"waiting", "starting", "running", "healthy", "unhealthy", "stopping", "exited(0)", "exited(1)", "exited(137)", "never ran",
	} {
		if got := word(seen("api", state)); got.text != state {
			t.Errorf("got %q, want %q", got.text, state)
		}
	}
	pulling := scheduler.ContainerView{KnownStatus: scheduler.StatusNone, DesiredStatus: scheduler.StatusRunning}
	if got := word(pulling); got != waiting {
		t.Errorf("before its image is there: %q", got.text)
	}
}

func TestStillSaysHowFarAStepIs(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Step{
		"still waiting: 2 passing instances of api (1 of 2), 20 s of 90 s": {Text: "await 2 passing instances of api", SoFar: "1 of 2", Within: 90 * time.Second},
		"still busy: stop api-1, 20 s":                                     {Text: "stop api-1"},
		"still waiting: 40 answered requests, 20 s of 0.5 s":               {Text: "await 40 answered requests", Within: time.Second / 2},
	} {
		s.Begun = begun
		if got := s.Still(after(20 * time.Second)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
