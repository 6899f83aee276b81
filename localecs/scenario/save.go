package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// Save writes a run to its directory, as data and as a page, and returns the path of
// the page.
func Save(dir string, run view.RecordedRun) (page string, err error) {
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode the timeline: %w", err)
	}
	page = filepath.Join(dir, PageFile)
	return page, errors.Join(os.WriteFile(filepath.Join(dir, DataFile), append(data, '\n'), 0o644),
		WritePage(page, run))
}

// WritePage writes the page of a run to a file.
func WritePage(path string, run view.RecordedRun) error {
	var html bytes.Buffer
	if err := view.WriteHTML(&html, run); err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return os.WriteFile(path, html.Bytes(), 0o644)
}

// Load reads the run that Save wrote to dir, and returns the path of its data; dir may
// be that path as well.
func Load(dir string) (path string, run view.RecordedRun, err error) {
	path = dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		path = filepath.Join(dir, DataFile)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", run, fmt.Errorf("%w: want the directory of a run, such as .localecs/hello-mesh: it has a %s once "+
			"the run has ended", err, DataFile)
	}
	if err != nil {
		return "", run, err
	}
	run, err = view.ParseRun(data)
	return path, run, err
}

// Latest returns the directory of the run below dir that ended last.
func Latest(dir string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "*", DataFile)) // the pattern is valid
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
