package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/command"
)

// logs writes a log for each text.
func logs(t *testing.T, texts ...string) (all []command.Log) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		l := command.Log{Task: "web", Container: strings.Repeat("c", i+1)}
		l.Path = filepath.Join(dir, l.Container)
		if err := os.WriteFile(l.Path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func TestTail(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat(strings.Repeat("x", 999)+"\n", 100)
	for _, tt := range []struct {
		text string
		tail int
		want string
	}{
		{"a\nb\nc\n", -1, "a\nb\nc\n"},
		{"a\nb\nc\n", 0, ""},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 4, "a\nb\nc\n"},
		{"a\nb\nc", 1, "c\n"},
		{"a\n\n\n", 2, "\n\n"},
		{"", 2, ""},
		{"\n", 1, "\n"},
		{huge, 40, huge[:40000]},
		{"begin\n" + huge, 100, huge},
	} {
		var out strings.Builder
		p := command.Printer{Out: &out, Logs: logs(t, tt.text), Tail: tt.tail}
		if err := p.All(); err != nil || out.String() != tt.want {
			t.Errorf("%.10q, tail %d: %v, %.20q of %d bytes, want %.20q", tt.text, tt.tail, err, out.String(), out.Len(), tt.want)
		}
	}
}

func TestLinesNameTaskAndContainer(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := command.Printer{Out: &out, Logs: logs(t, "1\n2", "3\n"), Tail: -1}
	if err := p.All(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("c  | 1\nc  | 2\ncc | 3\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	p = command.Printer{Out: &out, Logs: logs(t, "say \"x\"\n"), JSON: true, Tail: -1}
	if err := p.All(); err != nil || out.String() != `{"task":"web","container":"c","line":"say \"x\""}`+"\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}

// heard takes what is printed, and acts on it.
type heard func(text string)

func (h heard) Write(p []byte) (int, error) {
	h(string(p))
	return len(p), nil
}

// A line is printed when it has ended, and what never ends at the end of all.
func TestFollow(t *testing.T) {
	t.Parallel()
	all := logs(t, "one\ntw")
	f, err := os.OpenFile(all[0].Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	over := make(chan struct{})
	var got []string
	p := command.Printer{Logs: all, Tail: -1, Out: heard(func(text string) {
		got = append(got, text)
		switch text {
		case "one\n":
			_, err = f.WriteString("o\n")
		case "two\n":
			_, err = f.WriteString("last")
			close(over)
		}
		if err != nil {
			t.Error(err)
		}
	})}
	if err := p.Follow(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one\n", "two\n", "last\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type deaf struct{}

var errDeaf = errors.New("no reader")

func (deaf) Write([]byte) (int, error) { return 0, errDeaf }

func TestFollowEndsWithoutReaders(t *testing.T) {
	t.Parallel()
	p := command.Printer{Logs: logs(t, "x\n"), Tail: -1, Out: deaf{}}
	done := make(chan error, 1)
	go func() { done <- p.Follow(t.Context(), nil) }()
	testkit.Eventually(t, "the printer ends", func() bool { return len(done) == 1 })
	if err := <-done; !errors.Is(err, errDeaf) {
		t.Error(err)
	}
}

// However a log is, its tail is so many lines, and its end.
func FuzzTail(f *testing.F) {
	f.Add("a\nb\nc", 2)
	f.Add("\n\n\n", 1)
	f.Add("", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 || n > 1000 {
			return
		}
		var out strings.Builder
		p := command.Printer{Out: &out, Logs: logs(t, text), Tail: n}
		if err := p.All(); err != nil {
			t.Fatal(err)
		}
		all := strings.SplitAfter(text, "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		want := strings.Join(all[max(0, len(all)-n):], "")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if out.String() != want {
			t.Errorf("%d lines of %q: %q, want %q", n, text, out.String(), want)
		}
	})
}
