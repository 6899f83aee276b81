package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
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

func TestLoadReturnsSavedRun(t *testing.T) {
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
	for _, path := range []string{dir, filepath.Join(dir, "timeline.json")} {
		from, got, err := Load(path)
		d := cmp.Diff(run(), got)
		if d != "" || err != nil {
			t.Fatalf("%s: from %s, %v (-want +got):\n%s", path, from, err, d)
		}
		testkit.Equal(t, path+": from", from, filepath.Join(dir, "timeline.json"))
	}
	again := filepath.Join(dir, "again.html")
	if err := WritePage(again, run()); err != nil {
		t.Fatal(err)
	}
	if same, err := os.ReadFile(again); err != nil || !bytes.Equal(same, html) {
		t.Errorf("another page is written later: %v", err)
	}
}

func TestLoadRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                           "want the directory of a run, such as .localecs/hello-mesh",
		filepath.Join(dir, "none"):    "want the directory of a run",
		write(t, dir, "a.json", "{"):  "read the timeline: unexpected end of JSON input",
		write(t, dir, "b.json", "{}"): "it is not a timeline of localecs",
	} {
		if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := Save(filepath.Join(dir, "none"), run()); err == nil {
		t.Error("saved into a directory that is not there")
	}
	if err := WritePage(filepath.Join(dir, "none", "x.html"), run()); err == nil {
		t.Error("a page in a directory that is not there")
	}
}

func TestLatestIsTheRunThatEndedLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Latest(dir); err == nil || !strings.Contains(err.Error(), "no run has ended in "+dir) {
		t.Errorf("got %v", err)
	}
	for i, name := range []string{"b", "c", "a"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		path := write(t, filepath.Join(dir, name), DataFile, "{}")
		at := time.Unix(1_800_000_000+int64(i%2), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Latest(dir); err != nil || got != filepath.Join(dir, "c") {
		t.Errorf("%s, %v", got, err)
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FuzzTimelineFileIsDrawn feeds edited files.
func FuzzTimelineFileIsDrawn(f *testing.F) {
	f.Add([]byte(`{"scenario":"x","started":"2026-01-02T03:04:05Z","seconds":3,"tasks":[{"name":"a",` +
		`"events":[{"at":1,"kind":"status","container":"c","status":"RUNNING"},{"at":2,"kind":"desired"}]}],` +
		`"requests":{"bucket_seconds":0.1,"answered":[1,2],"lost":[0,1],"slowest_ms":[1,2]}}`))
	f.Add([]byte(`{"scenario":"x","started":"2026-01-02T03:04:05Z","seconds":-1e300,"requests":{"bucket_seconds":-3,` +
		`"answered":[1],"lost":[],"slowest_ms":[]},"steps":[{"from":1e300,"to":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := view.ParseRun(data)
		if err != nil {
			return
		}
		if _, err := Save(t.TempDir(), run); err != nil {
			t.Fatal(err)
		}
	})
}
