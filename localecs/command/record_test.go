package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// at returns a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// eventLog keeps events.
type eventLog struct {
	events []scenario.Event
}

func (p *eventLog) Event(e scenario.Event) { p.events = append(p.events, e) }

// recorded returns a run of one task that has not been saved.
func recorded(t *testing.T) (scenario.Options, *eventLog) {
	t.Helper()
	out := &eventLog{}
	o := scenario.Options{Dir: t.TempDir(), Progress: out.Event, Record: scenario.NewRecording(), Log: hclog.NewNullLogger()}
	o.Record.Start("hello", "reverse", at(0))
	o.Record.Add(scenario.Event{Time: at(1), Kind: view.KindStatus, Task: "web", Container: "web", Status: "RUNNING"})
	o.Record.Add(scenario.Event{Time: at(2), Kind: view.KindDesired, Task: "web", Status: "STOPPED"})
	return o, out
}

func TestReportNamesItsPage(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	r := &scenario.Report{Failures: []string{"it was late"}, Seed: 7}
	saveTimeline(o, r, nil)
	page := filepath.Join(o.Dir, "timeline.html")
	if r.Timeline != page || r.History.Outcome != "FAILED" || r.History.Seed != 7 || len(out.events) != 0 {
		t.Errorf("%s, %+v, events %v", r.Timeline, r.History, out.events)
	}
	text, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(text, []byte("it was late")) {
		t.Fatalf("%v in\n%s", err, text)
	}
}

func TestInterruptedRunSendsItsPage(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	saveTimeline(o, nil, errors.New("interrupted"))
	page := filepath.Join(o.Dir, "timeline.html")
	if len(out.events) != 1 || out.events[0].Kind != scenario.KindTimeline || out.events[0].Detail != page || out.events[0].Text != "Timeline: "+page {
		t.Errorf("events %+v", out.events)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("<title>hello: interrupted</title>")) {
		t.Errorf("%v\n%s", err, text)
	}
	none := scenario.Options{Dir: t.TempDir(), Progress: (&eventLog{}).Event, Record: scenario.NewRecording()}
	saveTimeline(none, nil, errors.New("interrupted"))
	if left, _ := os.ReadDir(none.Dir); len(left) != 0 {
		t.Errorf("of a run without tasks: %v", left)
	}
}

func TestUnwritablePageChangesNoVerdict(t *testing.T) {
	t.Parallel()
	o, out := recorded(t)
	var log bytes.Buffer
	o.Dir, o.Log = filepath.Join(o.Dir, "none"), hclog.New(&hclog.LoggerOptions{Output: &log})
	r := &scenario.Report{}
	saveTimeline(o, r, nil)
	saveTimeline(o, nil, errors.New("interrupted"))
	if r.Timeline != "" || len(r.Failures) != 0 || len(out.events) != 0 || strings.Count(log.String(), "timeline was not written") != 2 {
		t.Errorf("%+v, events %v, log %s", r, out.events, &log)
	}
}
