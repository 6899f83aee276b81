package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// The files of a run, in its directory below -dir.
const (
	DataFile = "timeline.json"
	PageFile = "timeline.html"
)

// Save writes a run to its directory, as data and as a page, and returns the path of the page.
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
	return page, errors.Join(os.WriteFile(filepath.Join(dir, DataFile), append(data, '\n'), 0o644),
		os.WriteFile(page, html.Bytes(), 0o644))
}
