package receiver

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/volume"
)

const (
	fileMode = 0o600
	// maxOverlap bounds how long a replaced token stays valid. The broker revokes one that
	// was rotated after the same time.
	maxOverlap = 10 * time.Second
)

// token is what the token file holds, and what is known about it.
type token struct {
	secret secret.Value
	record
}

// record is the content of the file beside the token file.
type record struct {
	TaskARN  string    `json:"task_arn"`
	Accessor string    `json:"accessor"`
	Backend  string    `json:"backend"`
	Policies []string  `json:"policies,omitempty"`
	Obtained time.Time `json:"obtained"`
	// Expires is zero for a token that does not expire.
	Expires time.Time `json:"expires,omitzero"`
	// Period is that of a token which is renewed, in seconds.
	Period int `json:"period,omitempty"`
	// SHA256 is the hash of the token, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Previous is the record of the token before. It is that of the token file when the
	// receiver was killed between the two files.
	Previous *record `json:"previous,omitempty"`
}

// after returns the token with the record of the one that it replaces.
func (t token) after(previous token) token {
	if r := previous.record; !previous.secret.Empty() {
		r.Previous = nil
		t.Previous = &r
	}
	return t
}

func newToken(u Unwrapped, taskARN string, now time.Time) token {
	if u.Expires.IsZero() && u.Period > 0 {
		u.Expires = now.Add(time.Duration(u.Period) * time.Second)
	}
	return token{u.Secret, record{
		TaskARN: taskARN, Accessor: u.Accessor, Backend: u.Backend, Policies: u.Policies,
		Obtained: now, Expires: u.Expires, Period: u.Period, SHA256: hash(u.Secret),
	}}
}

func hash(s secret.Value) string {
	sum := s.SHA256()
	return hex.EncodeToString(sum[:])
}

// valid reports whether there is a token and it has not expired.
func (t token) valid(now time.Time) bool {
	return !t.secret.Empty() && (t.Expires.IsZero() || now.Before(t.Expires))
}

// end returns when the token expires, for the log: in RFC 3339, or "never".
func (r record) end() string {
	if r.Expires.IsZero() {
		return "never"
	}
	return r.Expires.UTC().Format(time.RFC3339)
}

// life returns how long the token lives from when it was obtained or renewed, zero without expiry.
func (t token) life() time.Duration {
	if t.Expires.IsZero() {
		return 0
	}
	return max(0, t.Expires.Sub(t.Obtained))
}

// overlap returns how long the token stays valid after it was replaced.
func (t token) overlap() time.Duration {
	if t.Expires.IsZero() {
		return maxOverlap
	}
	return min(maxOverlap, t.life()/10)
}

// files are the token file and its record.
type files struct {
	path string
	// reader is a user who may read the token file besides its owner; nil for none.
	reader *uint32
}

func (f files) recordPath() string { return f.path + ".json" }

// check reports whether both files can be written.
func (f files) check() error {
	err := volume.CheckDir(filepath.Dir(f.path), filepath.Base(f.path), filepath.Base(f.recordPath()))
	if err != nil {
		err = fmt.Errorf("check the directory of the token file: %w", err)
	}
	return err
}

// write writes the record, and then replaces the token file in one step. Without its record,
// a token is not taken over by a later run, so an error of the record is returned in
// notRecorded and is none of the token. A file that does not have the token before is not
// the receiver's, and leaves nothing to the new one.
func (f files) write(t token, before secret.Value) (notRecorded, err error) {
	notRecorded = f.writeRecord(t)
	data := []byte(t.secret.Reveal())
	// A file that is replaced keeps its readers at every moment.
	err = volume.ReplaceSecret(f.path, before.Reveal(), data)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, volume.ErrForeign) {
		if err = volume.Write(f.path, data, fileMode, volume.KeepGroup); err == nil {
			// A file without its reader stays so when it is replaced.
			if err = f.allowReader(); err != nil {
				err = errors.Join(err, f.remove())
			}
		}
	}
	return notRecorded, err
}

func (f files) writeRecord(t token) error {
	data, err := json.Marshal(t.record)
	if err != nil {
		return err
	}
	return volume.Write(f.recordPath(), append(data, '\n'), fileMode, volume.KeepGroup)
}

func (f files) allowReader() error {
	if f.reader == nil {
		return nil
	}
	err := volume.AllowReader(f.path, *f.reader, fileMode)
	if errors.Is(err, errors.ErrUnsupported) {
		err = exit.Usagef("%w: its file system has no access control lists; run this container as that user, without -token-reader", err)
	}
	return err
}

// read returns the token of an earlier run of the task. A file that is not from one gives
// the zero token, and is removed so that the next one gets the mode of a new file.
func (f files) read(taskARN string) (token, error) {
	text, err := volume.ReadSecret(f.path)
	if errors.Is(err, volume.ErrForeign) {
		return token{}, f.remove()
	}
	if err != nil {
		return token{}, fmt.Errorf("read the token file: %w", err)
	}
	t := token{secret: secret.New(text)}
	data, err := volume.ReadSecret(f.recordPath())
	if err == nil {
		err = json.Unmarshal([]byte(data), &t.record)
	}
	if t.Previous != nil && t.SHA256 != hash(t.secret) {
		t.record = *t.Previous
	}
	if err == nil && !t.secret.Empty() && t.TaskARN == taskARN && t.SHA256 == hash(t.secret) {
		return t, f.allowReader()
	}
	return token{}, f.remove()
}

func (f files) remove() error {
	var errs []error
	for _, path := range []string{f.path, f.recordPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the token file: %w", err))
		}
	}
	return errors.Join(errs...)
}
