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
)

// Client speaks with one run.
type Client struct {
	// Directory is the run's.
	Directory string
	version   string
	http      *http.Client
}

// Dial returns a client of the one run below a directory. The error is a
// *NoneError when there is none. version is this program's.
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

// ErrGone means that the run has ended.
var ErrGone = errors.New("the run has ended")

// State is how the run is now.
func (c *Client) State(ctx context.Context) (s State, err error) {
	body, err := c.call(ctx, http.MethodGet, "state", nil)
	if err != nil {
		return s, err
	}
	defer body.Close()
	return s, json.NewDecoder(body).Decode(&s)
}

// Watch calls see with the state, and again when it has changed, until see
// returns true or the context ends. The last one has Ended; what comes instead of
// it, when the run was killed, is ErrGone.
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
	return c.tell(ctx, "stop", stopRequest{taskIDs})
}

// End asks the run to stop all tasks and to end, and does not wait.
func (c *Client) End(ctx context.Context) error { return c.tell(ctx, "end", nil) }

func (c *Client) tell(ctx context.Context, what string, in any) error {
	body, err := c.call(ctx, http.MethodPost, what, in)
	if err != nil {
		return err
	}
	return body.Close()
}

// call returns the body of a good answer.
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

// refused is why the run has not done what it was asked for.
func refused(what string, answer *http.Response) error {
	var why refusal
	if err := json.NewDecoder(answer.Body).Decode(&why); err != nil {
		return fmt.Errorf("%s: the run answers %s", what, answer.Status)
	}
	return errors.New(why.Error)
}
