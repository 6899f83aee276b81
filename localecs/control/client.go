package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/volume"
)

// Client is a client of one run's control socket.
type Client struct {
	// Directory is the run's state directory.
	Directory string
	version   string
	http      *http.Client
}

// Dial returns a client of the only run below a directory. The error is a *NoneError if there is
// none. version is this program's.
func Dial(ctx context.Context, dir, version string) (*Client, error) {
	found, err := Find(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Client{Directory: found, version: version, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return connect(ctx, found)
		},
	}}}, nil
}

// ErrGone is returned when the run has ended.
var ErrGone = errors.New("the run has ended")

// State returns the run's current state.
func (c *Client) State(ctx context.Context) (s State, err error) {
	body, err := c.call(ctx, http.MethodGet, "state", nil)
	if err != nil {
		return s, err
	}
	defer body.Close()
	return s, json.NewDecoder(body).Decode(&s)
}

// Watch calls see with the state, and again after each change, until see returns true or the
// context ends. The last state has Ended; if the run was killed, Watch returns ErrGone instead.
func (c *Client) Watch(ctx context.Context, see func(State) (done bool)) error {
	body, err := c.call(ctx, http.MethodGet, "watch", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	for states := json.NewDecoder(body); ; {
		var s State
		if err := states.Decode(&s); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return ErrGone
		}
		if see(s) || s.Ended {
			return nil
		}
	}
}

// Stop asks tasks to stop, by their IDs, and does not wait.
func (c *Client) Stop(ctx context.Context, taskIDs ...string) error {
	return c.post(ctx, "stop", taskIDs)
}

// End asks the run to stop all tasks and to end, and does not wait.
func (c *Client) End(ctx context.Context) error { return c.post(ctx, "end", nil) }

func (c *Client) post(ctx context.Context, what string, in any) error {
	body, err := c.call(ctx, http.MethodPost, what, in)
	if err != nil {
		return err
	}
	return body.Close()
}

// call returns the body of a successful response.
func (c *Client) call(ctx context.Context, method, what string, in any) (io.ReadCloser, error) {
	r, err := c.request(ctx, method, what, in)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrGone, cause(err))
	case answer.StatusCode < http.StatusBadRequest:
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, refused(what, answer)
}

func (c *Client) request(ctx context.Context, method, what string, in any) (*http.Request, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://localecs/"+what, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set(versionHeader, c.version)
	return r, nil
}

func refused(what string, answer *http.Response) error {
	why, err := io.ReadAll(answer.Body)
	if text := strings.TrimSpace(string(why)); err == nil && text != "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: the run answered %s", what, answer.Status)
}

// EndFile holds the last State of a run that has ended, in its directory: a short run may end
// before a client has connected.
const EndFile = "state.json"

// clockTick is how far file times may be behind the clock: a tick of the slowest kernel.
const clockTick = 10 * time.Millisecond

func (s *Server) leave() error {
	text, err := json.Marshal(s.now(true))
	if err != nil {
		return err
	}
	return volume.Write(filepath.Join(s.options.Directory, EndFile), append(text, '\n'), 0o644, volume.KeepGroup)
}

// Ended returns the last State of the run in dir or right below it that ended last, or nil if none
// has ended since then.
func Ended(dir string, since time.Time) (*State, error) {
	found, last := "", since.Add(-clockTick)
	for _, d := range Directories(dir) {
		if st, err := os.Stat(filepath.Join(d, EndFile)); err == nil && st.ModTime().After(last) {
			found, last = d, st.ModTime()
		}
	}
	if found == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(found, EndFile))
	if errors.Is(err, os.ErrNotExist) { // the next run has started
		return nil, nil
	}
	var s State
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("read last state of a run: %w", err)
	}
	return &s, nil
}
