package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit/vt"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// frameOf is the nth frame: so many rows, with a mark that no line has.
func frameOf(n, rows, width int) []string {
	var frame []string
	for i := range rows {
		text := fmt.Sprintf("# %d %d %s", n, i, strings.Repeat("~", 200))
		frame = append(frame, text[:max(1, width-1)])
	}
	return frame
}

func TestPaintShowsLinesAboveTheFrame(t *testing.T) {
	t.Parallel()
	term := vt.New(20, 6)
	size := view.Size{Width: 20, Height: 6}
	var p painter
	fmt.Fprint(term, "$ localecs run\n")
	for _, c := range []struct {
		lines string
		frame []string
		want  []string
	}{
		{"", []string{"== a", "step 1"}, []string{"$ localecs run", "== a", "step 1"}},
		{"one\n", []string{"== ab", "step 1"}, []string{"$ localecs run", "one", "== ab", "step 1"}},
		{"", []string{"== ab", "web", "step 2"}, []string{"$ localecs run", "one", "== ab", "web", "step 2"}},
		{"two\nthree\n", []string{"==", "web", "s"}, []string{"one", "two", "three", "==", "web", "s"}},
		{"a line that is longer than that\n", []string{"==", "s"}, []string{"two", "three", "a line that is longe", "r than that", "==", "s"}},
		{"exactly twenty cells\n", []string{"==", "s"}, []string{"three", "a line that is longe", "r than that", "exactly twenty cells", "==", "s"}},
		{"end\n", nil, []string{"three", "a line that is longe", "r than that", "exactly twenty cells", "end", ""}},
	} {
		term.Write(p.paint([]byte(c.lines), c.frame, size))
		if got := strings.Join(term.Screen(), "\n"); got != strings.Join(c.want, "\n") {
			t.Errorf("after %q: the screen is\n%s\nwant\n%s", c.lines, got, strings.Join(c.want, "\n"))
		}
	}
	want := "$ localecs run\none\ntwo\nthree\na line that is longer than that\nexactly twenty cells\nend\n"
	if got := term.Text(); got != want || len(term.Unknown) > 0 {
		t.Errorf("in all, got\n%s\nwant\n%s\nnot understood: %v", got, want, term.Unknown)
	}
}

func TestPaintIsQuietWhenNothingHasChanged(t *testing.T) {
	t.Parallel()
	var p painter
	size := view.Size{Width: 20, Height: 6}
	if got := p.paint(nil, nil, size); len(got) != 0 && strings.Contains(string(got), "\x1b") {
		t.Errorf("without a frame: %q", got)
	}
	p.paint(nil, []string{"a"}, size)
	if got := p.paint(nil, []string{"a"}, size); got != nil {
		t.Errorf("the same frame again: %q", got)
	}
}

// A row that this terminal takes to be longer than we do stays one row.
func TestPaintSurvivesOtherCharacterWidths(t *testing.T) {
	t.Parallel()
	term := vt.New(10, 6)
	var p painter
	size := view.Size{Width: 40, Height: 6}
	for i := range 5 {
		term.Write(p.paint(nil, frameOf(i, 3, 40), size))
		term.Write(p.paint(fmt.Appendf(nil, "l%d\n", i), frameOf(i, 3, 40), size))
	}
	term.Write(p.paint(nil, nil, size))
	if got, want := term.Text(), "l0\nl1\nl2\nl3\nl4\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever happens to the terminal, at the end it has the lines and nothing
// else: windows of any size, that change at any time, and typed text.
func TestBlockIsRemovedAtTheEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := view.Size{Width: 10 + r.IntN(60), Height: 2 + r.IntN(30)}
		term := vt.New(size.Width, size.Height)
		term.Reflow = true
		var p painter
		var want strings.Builder
		for i := range 40 {
			lines := ""
			for range r.IntN(3) {
				lines += fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", 1+r.IntN(100)))
			}
			want.WriteString(lines)
			term.Write(p.paint([]byte(lines), frameOf(i, r.IntN(size.Height), size.Width), size))
			switch row, col := term.Cursor(); {
			case r.IntN(4) == 0:
				size = view.Size{Width: 10 + r.IntN(60), Height: 2 + r.IntN(30)}
				term.Resize(size.Width, size.Height)
			case len(p.frame) > 2 && r.IntN(3) == 0:
				term.Write([]byte("\n\n^C")) // what the terminal echoes
			case col != 0 || row+len(p.frame) > size.Height:
				t.Fatalf("seed %d: the cursor is at %d, %d, above a frame of %d rows", seed, row, col, len(p.frame))
			}
		}
		term.Write(p.paint([]byte("end\n"), nil, size))
		want.WriteString("end\n")
		if got := term.Text(); got != want.String() || len(term.Unknown) > 0 {
			t.Fatalf("seed %d (-want +got):\n%s\nnot understood: %v", seed, cmp.Diff(want.String(), got), term.Unknown)
		}
	}
}

// A terminal that cuts rows when it becomes narrower loses what it cuts.
func TestResizingDoesNotSmear(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		size := view.Size{Width: 40, Height: 12}
		term := vt.New(size.Width, size.Height)
		var p painter
		for i := range 40 {
			term.Write(p.paint([]byte("a line\n"), frameOf(i, r.IntN(size.Height), size.Width), size))
			if r.IntN(3) == 0 {
				size = view.Size{Width: 10 + r.IntN(60), Height: 4 + r.IntN(30)}
				term.Resize(size.Width, size.Height)
			}
		}
		term.Write(p.paint(nil, nil, size))
		if got, want := term.Text(), strings.Repeat("a line\n", 40); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// Ctrl-C throws away what the terminal has not taken yet: wherever a frame ends
// for that, the lines after it are whole, in rows of their own and without its colours.
func TestPaintAfterAFrameThatCtrlCCut(t *testing.T) {
	t.Parallel()
	size := view.Size{Width: 20, Height: 6}
	frame := func(n int) []string { return []string{fmt.Sprintf("\x1b[31m== %d日\x1b[0m", n), "step"} }
	const line = "a line that is longer than that"
	for cut := 0; ; cut++ {
		term := vt.New(size.Width, size.Height)
		var p painter
		term.Write(p.paint([]byte("one\n"), frame(1), size))
		second := p.paint([]byte("two\n"), frame(2), size)
		if cut > len(second) {
			break
		}
		term.Write(second[:cut])
		last := p.paint([]byte(line+"\n"), nil, size)
		term.Write(last)
		if rows := strings.Split(term.Text(), "\n"); rows[len(rows)-2] != line || !strings.HasPrefix(string(last), plainStyle) || len(term.Unknown) > 0 {
			t.Errorf("cut at %d of %q: %q, not understood %v", cut, second, rows, term.Unknown)
		}
	}
}
