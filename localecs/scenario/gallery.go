package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// The files of a run, in its directory below -dir.
const (
	DataFile = "timeline.json"
	PageFile = "timeline.html"
)

// History is what a picture is drawn from.
type History = view.RecordedRun

// Save writes a history into the run's directory, as data and as a page, and says
// where the page is.
func Save(dir string, run view.RecordedRun) (page string, err error) {
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the timeline: %w", err)
	}
	var html bytes.Buffer
	if err := view.WriteHTML(&html, run); err != nil {
		return "", fmt.Errorf("draw the timeline: %w", err)
	}
	page = filepath.Join(dir, PageFile)
	return page, errors.Join(
		os.WriteFile(filepath.Join(dir, DataFile), append(data, '\n'), 0o644),
		os.WriteFile(page, html.Bytes(), 0o644),
	)
}

// Load reads the history that a run has left in dir; dir may be the file as well.
func Load(dir string) (view.RecordedRun, error) {
	path := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		path = filepath.Join(dir, DataFile)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return view.RecordedRun{}, fmt.Errorf("%w: want the directory of a run, such as .localecs/hello-mesh: it has a %s once the run has ended", err, DataFile)
	}
	if err != nil {
		return view.RecordedRun{}, err
	}
	return Parse(data)
}

// Latest is the directory of the run below dir that has ended last.
func Latest(dir string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "*", DataFile)) // the pattern is a good one
	latest, at := "", time.Time{}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			latest, at = filepath.Dir(path), info.ModTime()
		}
	}
	if latest == "" {
		return "", fmt.Errorf("no run has ended in %s: name the directory of one", dir)
	}
	return latest, nil
}

// Parse reads a history.
func Parse(data []byte) (run view.RecordedRun, err error) {
	if err := json.Unmarshal(data, &run); err != nil {
		return view.RecordedRun{}, fmt.Errorf("read the timeline: %w", err)
	}
	if err := run.Check(); err != nil {
		return view.RecordedRun{}, fmt.Errorf("read the timeline: %w", err)
	}
	return run, nil
}

// Looks say how a run is shown in the terminal.
type Looks = view.SketchOptions

// Show draws a run with characters. The error is the writer's.
func Show(w io.Writer, run view.RecordedRun, o Looks) error { return view.WriteSketch(w, run, o) }

// Page writes the page of a run into a file.
func Page(path string, run view.RecordedRun) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(view.WriteHTML(out, run), out.Close())
}
