package scenario

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/view"
)

func run() view.RecordedRun {
	return view.RecordedRun{
		Scenario: "hello", Started: time.Unix(1_800_000_000, 0).UTC(), Seconds: 3, Outcome: view.Passed,
		Tasks: []view.RecordedTask{
			{Name: "web", Events: []view.RecordedEvent{{At: 1, Kind: view.KindStatus, Container: "web",
				Status: "RUNNING"}}},
		},
	}
}

func TestSaveWritesPageAndData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page, err := Save(dir, run())
	if err != nil || page != filepath.Join(dir, "timeline.html") {
		t.Fatalf("%s, %v", page, err)
	}
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("<title>hello: passed</title>")) {
		t.Errorf("%v in\n%s", err, html)
	}
	data, err := os.ReadFile(filepath.Join(dir, "timeline.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got view.RecordedRun
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run(), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := Save(filepath.Join(dir, "none"), run()); err == nil {
		t.Error("saved into a directory that is not there")
	}
}
