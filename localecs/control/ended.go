package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/internal/volume"
)

// EndFile is in the directory of a run that has ended: its last State. A short run
// may be over before anybody has connected to its socket.
const EndFile = "state.json"

// clockTick is how far times of files may be behind the clock: a tick of the
// slowest kernel.
const clockTick = 10 * time.Millisecond

// leave writes how all has ended.
func (s *Server) leave() error {
	text, err := json.Marshal(s.now(true))
	if err != nil {
		return err
	}
	return volume.Write(filepath.Join(s.Directory, EndFile), append(text, '\n'), 0o644, volume.KeepGroup)
}

// Ended is the last State of a run that has ended since then, in dir or right below
// it, of several the one that ended last; nil if there is none.
func Ended(dir string, since time.Time) (*State, error) {
	found, last := "", since.Add(-clockTick)
	for _, d := range places(dir) {
		if st, err := os.Stat(filepath.Join(d, EndFile)); err == nil && st.ModTime().After(last) {
			found, last = d, st.ModTime()
		}
	}
	if found == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(found, EndFile))
	if errors.Is(err, os.ErrNotExist) { // the next run has begun
		return nil, nil
	}
	var s State
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("read how a run has ended: %w", err)
	}
	return &s, nil
}
