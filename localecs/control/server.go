package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Controller is what a Server shows and controls. It is used concurrently, and also after the cluster
// has ended.
type Controller interface {
	// State returns the current state; the Server adds what ServerOptions hold.
	State() State
	// Stop asks the task with an ID to stop, in ECS's order.
	Stop(taskID string) error
	// End stops all tasks in ECS's order and ends the run. It does not wait.
	End()
	// Attach runs a process in a container, and Visit one of this machine in the cluster's
	// network, until the process or the context ends. code is as in runtime.Session.
	Attach(ctx context.Context, r Request, s runtime.Session) (code int, err error)
	Visit(ctx context.Context, r Request, s runtime.Session) (code int, err error)
}

// ServerOptions configure a Server.
type ServerOptions struct {
	// Command is run or serve, Name the scenario's.
	Command, Name string
	// Version is the program's; clients of other versions are refused.
	Version string
	// Directory holds the socket and logs.
	Directory  string
	Controller Controller
}

// Server answers on a run's socket.
type Server struct {
	options ServerOptions
	http    *http.Server
	serving sync.WaitGroup // and sessions
	closing chan struct{}
	once    sync.Once
	closed  error
}

// period is the interval at which watch compares states.
const period = 50 * time.Millisecond

// versionHeader is the program's version, in requests and responses.
const versionHeader = "Localecs-Version"

// Serve serves on a socket in o.Directory until Close.
func Serve(o ServerOptions) (*Server, error) {
	l, err := Listen(o.Directory)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, closing: make(chan struct{})}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.serving.Go(func() { _ = s.http.Serve(l) }) // until Close
	return s, nil
}

// Close sends the last state to watching clients, and replaces the socket by EndFile. It must be
// called when nothing runs any more. Further calls do nothing.
func (s *Server) Close() error {
	s.once.Do(func() {
		err := s.leave() // before the socket goes, so that one of them always exists
		if gone := os.Remove(filepath.Join(s.options.Directory, SocketName)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		close(s.closing)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(ctx) != nil { // a client does not read
			err = errors.Join(err, s.http.Close())
		}
		s.serving.Wait()
		s.closed = err
	})
	return s.closed
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", s.state)
	mux.HandleFunc("GET /watch", s.watch)
	mux.HandleFunc("POST /stop", s.stop)
	mux.HandleFunc("POST /attach", func(w http.ResponseWriter, r *http.Request) {
		s.session(w, r, s.options.Controller.Attach)
	})
	mux.HandleFunc("POST /visit", func(w http.ResponseWriter, r *http.Request) {
		s.session(w, r, s.options.Controller.Visit)
	})
	mux.HandleFunc("POST /end", func(w http.ResponseWriter, _ *http.Request) {
		s.options.Controller.End()
		w.WriteHeader(http.StatusNoContent)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, s.options.Version)
		if theirs := r.Header.Get(versionHeader); theirs != s.options.Version {
			refuse(w, http.StatusConflict,
				fmt.Errorf("localecs version mismatch: this is %s, the run has %s: use the version of the run", theirs,
					s.options.Version))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// refuse answers with an error as text.
func refuse(w http.ResponseWriter, status int, err error) { http.Error(w, err.Error(), status) }

// now returns the complete state.
func (s *Server) now(ended bool) State {
	state := s.options.Controller.State()
	o := s.options
	state.Name, state.Command, state.Version, state.Directory = o.Name, o.Command, o.Version, o.Directory
	state.Ended = ended
	return state
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(s.now(false)) // an error means that the client disconnected
}

// watch sends the state, one per line, at each change and at the end of the run.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	var last []byte
	send := func(ended bool) error {
		text, err := json.Marshal(s.now(ended))
		if err != nil || bytes.Equal(text, last) {
			return err
		}
		last = text
		if _, err := w.Write(append(text, '\n')); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for send(false) == nil {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			_ = send(true) // an error means that the client disconnected
			return
		}
	}
}

// stop stops tasks by their IDs.
func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	var ids []string
	if err := json.NewDecoder(r.Body).Decode(&ids); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.options.Controller.Stop(id))
	}
	if err := errors.Join(errs...); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
