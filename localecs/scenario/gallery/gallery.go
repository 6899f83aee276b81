package gallery

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

	"github.com/meshtask/consul-ecs/localecs/picture"
	"github.com/meshtask/consul-ecs/localecs/picture/history"
	"github.com/meshtask/consul-ecs/localecs/picture/sketch"
)

// The files of a run, in its directory below -dir.
const (
	DataFile = "timeline.json"
	PageFile = "timeline.html"
)

// History is what a picture is drawn from.
type History = history.Run

// Save writes a history into the run's directory, as data and as a page, and says
// where the page is.
func Save(dir string, run history.Run) (page string, err error) {
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the timeline: %w", err)
	}
	var html bytes.Buffer
	if err := picture.HTML(&html, run); err != nil {
		return "", fmt.Errorf("draw the timeline: %w", err)
	}
	page = filepath.Join(dir, PageFile)
	return page, errors.Join(
		os.WriteFile(filepath.Join(dir, DataFile), append(data, '\n'), 0o644),
		os.WriteFile(page, html.Bytes(), 0o644),
	)
}

// Load reads the history that a run has left in dir; dir may be the file as well.
func Load(dir string) (history.Run, error) {
	path := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		path = filepath.Join(dir, DataFile)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return history.Run{}, fmt.Errorf("%w: want the directory of a run, such as .localecs/hello-mesh: it has a %s once the run has ended", err, DataFile)
	}
	if err != nil {
		return history.Run{}, err
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
func Parse(data []byte) (run history.Run, err error) {
	if err := json.Unmarshal(data, &run); err != nil {
		return history.Run{}, fmt.Errorf("read the timeline: %w", err)
	}
	if err := run.Check(); err != nil {
		return history.Run{}, fmt.Errorf("read the timeline: %w", err)
	}
	return run, nil
}

// Looks say how a run is shown in the terminal.
type Looks = sketch.Options

// Show draws a run with characters. The error is the writer's.
func Show(w io.Writer, run history.Run, o Looks) error { return sketch.Write(w, run, o) }

// Page writes the page of a run into a file.
func Page(path string, run history.Run) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(picture.HTML(out, run), out.Close())
}
