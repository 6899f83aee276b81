package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Request is a process to run; a session adds its streams.
type Request struct {
	Argv []string `json:"argv"`
	// TaskID and Container are for Attach.
	TaskID    string `json:"taskId,omitempty"`
	Container string `json:"container,omitempty"`
	// Terminal is set if the streams are a terminal that no other process uses.
	Terminal bool `json:"terminal,omitempty"`
	// Path is the program, absolute; Directory, Env and Umask are the caller's: for Visit.
	Path      string   `json:"path,omitempty"`
	Directory string   `json:"directory,omitempty"`
	Env       []string `json:"env,omitempty"`
	Umask     int      `json:"umask,omitempty"`
}

// A session starts as a request that the server answers with 101. Then the client sends one byte
// with its three descriptors, and after that signals; the server sends one exit. When one side
// closes the connection, the other gives up.

// exitMessage is sent by the server.
type exitMessage struct {
	Code  int    `json:"code"`
	Error string `json:"error,omitempty"`
}

// streams is the number of descriptors.
const streams = 3

// handshakeLimit bounds the transfer of the descriptors.
const handshakeLimit = 10 * time.Second

// session runs a session for a client.
func (s *Server) session(w http.ResponseWriter, r *http.Request,
	run func(context.Context, Request, runtime.Session) (int, error)) {
	var in Request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	s.serving.Add(1)
	defer s.serving.Done()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	defer conn.Close()
	files, err := handshake(conn)
	if err != nil {
		return // the client disconnected
	}
	defer closeAll(files)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan syscall.Signal, 16)
	go func() {
		defer cancel()
		for messages := json.NewDecoder(conn); ; {
			var signal syscall.Signal
			if messages.Decode(&signal) != nil {
				return
			}
			select {
			case signals <- signal:
			case <-ctx.Done():
				return
			}
		}
	}()
	var exit exitMessage
	exit.Code, err = run(ctx, in, runtime.Session{
		Argv: in.Argv, Stdin: files[0], Stdout: files[1], Stderr: files[2], Terminal: in.Terminal, Signals: signals,
	})
	if err != nil {
		exit.Error = err.Error()
	}
	_ = conn.SetWriteDeadline(time.Now().Add(handshakeLimit))
	_ = json.NewEncoder(conn).Encode(exit) // an error means that the client disconnected
}

// handshake accepts the session and receives its descriptors.
func handshake(conn net.Conn) ([]*os.File, error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a Unix socket")
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn,
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: localecs\r\n\r\n"); err != nil {
		return nil, err
	}
	rights := make([]byte, unix.CmsgSpace(streams*4))
	_, n, _, _, err := unixConn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	fds, err := host.Descriptors(rights[:n])
	var files []*os.File
	for i, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("stream-%d", i)))
	}
	if err == nil && len(files) != streams {
		err = fmt.Errorf("%d descriptors, want %d", len(files), streams)
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return files, conn.SetDeadline(time.Time{})
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Attach runs a process in a container, with the streams of s and its signals, and
// returns its exit code; with an error one of the session exit codes of package runtime.
func (c *Client) Attach(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	return c.session(ctx, "attach", r, s)
}

// Visit runs a program of this machine in the cluster's network.
func (c *Client) Visit(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	return c.session(ctx, "visit", r, s)
}

func (c *Client) session(ctx context.Context, what string, in Request, s runtime.Session) (code int, err error) {
	conn, err := c.start(ctx, what, in)
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer conn.Close()
	rights := unix.UnixRights(int(s.Stdin.Fd()), int(s.Stdout.Fd()), int(s.Stderr.Fd()))
	if _, _, err := conn.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return runtime.CodeFailed, fmt.Errorf("pass streams to the run: %w", err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		messages := json.NewEncoder(conn)
		for {
			select {
			case signal, ok := <-s.Signals:
				if !ok || messages.Encode(signal) != nil {
					return
				}
			case <-ctx.Done():
				conn.Close()
				return
			case <-ended:
				return
			}
		}
	}()
	var exit exitMessage
	switch err := json.NewDecoder(conn).Decode(&exit); {
	case ctx.Err() != nil:
		return runtime.CodeFailed, context.Cause(ctx)
	case err != nil:
		return runtime.CodeFailed, ErrGone
	case exit.Error != "":
		return exit.Code, errors.New(exit.Error)
	}
	return exit.Code, nil
}

// start requests a session and returns once the server waits for the streams.
func (c *Client) start(ctx context.Context, what string, in Request) (*net.UnixConn, error) {
	r, err := c.request(ctx, http.MethodPost, what, in)
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, c.Directory)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrGone, err)
	}
	if err := r.Write(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w (%w)", ErrGone, cause(err))
	}
	// The server sends nothing after this response until it has the streams.
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = refused(what, answer)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
