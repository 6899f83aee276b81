package command

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// told is a Progress that keeps events.
type told struct {
	scenario.Progress
	events []scenario.Event
}

func (p *told) Event(e scenario.Event) { p.events = append(p.events, e) }

// recorded is what a run of one task leaves to be saved.
func recorded(t *testing.T) (scenario.Options, *told) {
	t.Helper()
	out := &told{}
	o := scenario.Options{Dir: t.TempDir(), Progress: out, Record: scenario.NewRecording(), Log: hclog.NewNullLogger()}
	o.Record.Start("hello", "reverse", at(0))
	o.Record.Note(scenario.Event{Time: at(1), Kind: scenario.KindStatus, Task: "web", Container: "web", Status: "RUNNING"})
	o.Record.Note(scenario.Event{Time: at(2), Kind: scenario.KindDesired, Task: "web", Status: "STOPPED"})
	return o, out
}

func callPicture(t *testing.T, env map[string]string, args ...string) (string, error) {
	t.Helper()
	c := pictureCommand()
	fs := flag.NewFlagSet("picture", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	c.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := c.Run(t.Context(), &cli.Invocation{Args: fs.Args(), Stdout: &out, Getenv: func(name string) string { return env[name] }})
	return out.String(), err
}

func TestAReportedRunIsSavedAndDrawnAgain(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	r := &scenario.Report{Failures: []string{"it was late"}, Seed: 7}
	Reported(o, r)
	if r.Picture != filepath.Join(o.Dir, "timeline.html") || r.History.Outcome != "FAILED" || r.History.Seed != 7 || len(out.events) != 0 {
		t.Errorf("%s, %+v, told %v", r.Picture, r.History, out.events)
	}
	for _, c := range []struct {
		env        map[string]string
		args       []string
		has, lacks string
	}{
		{nil, []string{o.Dir}, "web stops, T0 at 2.00 s", "\x1b"},
		{nil, []string{o.Dir}, "▒", "="},
		{map[string]string{"LANG": "C"}, []string{o.Dir}, "=", "▒"},
		{map[string]string{"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, []string{o.Dir}, "▒", "="},
		{nil, []string{"-ascii", o.Dir}, "=", "▒"},
		{nil, []string{"-short", o.Dir}, "hello: FAILED", "web stops"},
		{nil, []string{"-task", "web", o.Dir}, "web starts", "\x1b"},
		{map[string]string{"COLUMNS": "120"}, []string{"-ascii", o.Dir}, strings.Repeat("-", 40), strings.Repeat("-", 120)},
		{nil, []string{"-ascii", "-width", "200", o.Dir}, strings.Repeat("-", 100), strings.Repeat("-", 200)},
	} {
		text, err := callPicture(t, c.env, c.args...)
		if err != nil || !strings.Contains(text, c.has) || strings.Contains(text, c.lacks) {
			t.Errorf("%v %v: %v, want %q and no %q in\n%s", c.env, c.args, err, c.has, c.lacks, text)
		}
	}
	again := filepath.Join(t.TempDir(), "x.html")
	if text, err := callPicture(t, nil, "-html", again, o.Dir); err != nil || text != "" {
		t.Errorf("%v, %q", err, text)
	}
	first, _ := os.ReadFile(r.Picture)
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("another page later: %v", err)
	}
}

func TestWrongPictureArgumentsAreTold(t *testing.T) {
	t.Parallel()
	o, _ := recorded(t)
	Reported(o, &scenario.Report{})
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no run has ended in .localecs: name the directory of one"},
		{[]string{"a", "b"}, "want the directory of one run"},
		{[]string{t.TempDir()}, "it has a timeline.json once the run has ended"},
		{[]string{"-task", "api", o.Dir}, "-task api: the run has no such task, it has web"},
		{[]string{"-html", filepath.Join(o.Dir, "none", "x"), o.Dir}, "no such file or directory"},
	} {
		_, err := callPicture(t, nil, c.args...)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want a usage error with %q", c.args, err, c.want)
		}
	}
}

func TestARunThatWasInterruptedTellsItsPage(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	Broken(o, errors.New("interrupted"))
	page := filepath.Join(o.Dir, "timeline.html")
	if len(out.events) != 1 || out.events[0].Kind != scenario.KindTimeline || out.events[0].Detail != page || out.events[0].Text != "Timeline: "+page {
		t.Errorf("told %+v", out.events)
	}
	if text, err := callPicture(t, nil, o.Dir); err != nil || !strings.HasPrefix(text, "hello: interrupted") {
		t.Errorf("%v\n%s", err, text)
	}
	none := scenario.Options{Dir: t.TempDir(), Progress: &told{}, Record: scenario.NewRecording()}
	Broken(none, errors.New("interrupted"))
	if left, _ := os.ReadDir(none.Dir); len(left) != 0 {
		t.Errorf("of a run without tasks: %v", left)
	}
}

func TestAPageThatCannotBeWrittenChangesNothing(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	var log bytes.Buffer
	o.Dir, o.Log = filepath.Join(o.Dir, "none"), hclog.New(&hclog.LoggerOptions{Output: &log})
	r := &scenario.Report{}
	Reported(o, r)
	Broken(o, errors.New("interrupted"))
	if r.Picture != "" || len(r.Failures) != 0 || len(out.events) != 0 || strings.Count(log.String(), "timeline was not written") != 2 {
		t.Errorf("%+v, told %v, log %s", r, out.events, &log)
	}
}

func TestARunIsDrawnWhenThatIsWanted(t *testing.T) {
	t.Parallel()
	o, _ := recorded(t)
	r := &scenario.Report{}
	Reported(o, r)
	for text, want := range map[string]bool{"auto": false, "never": false, "always": true} {
		var w When
		if err := w.Set(text); err != nil || w.String() != text {
			t.Fatalf("%s: %v", text, err)
		}
		var out bytes.Buffer
		err := w.Show(&cli.Invocation{Stdout: &out, Getenv: func(string) string { return "" }}, &out, r)
		if drawn := strings.Contains(out.String(), "hello: passed"); err != nil || drawn != want {
			t.Errorf("-picture %s into a pipe: drawn %t, %v", text, drawn, err)
		}
	}
	var w When
	if err := w.Set("maybe"); err == nil || err.Error() != "want auto, always or never" {
		t.Errorf("got %v", err)
	}
}
