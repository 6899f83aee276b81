package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/host"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

const argv0Watcher = "localecs-docker-watcher"

// Watcher is a process that outlives this one, however it ends, until it has removed the containers.
type Watcher struct {
	// stay is open as long as this process lives.
	stay io.Closer
	done chan struct{} // closed when it has ended
	err  error         // of its end
}

// watch starts a watcher of what has the label in the engine at the address.
func watch(address, label string) (*Watcher, error) {
	cmd := exec.Command(host.SelfExe)
	cmd.Args = []string{argv0Watcher, address, label}
	cmd.Env = []string{}
	// Ctrl-C is for this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stay, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the process that removes containers: %w", err)
	}
	w := &Watcher{stay: stay, done: make(chan struct{})}
	go func() {
		w.err = cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

// Close lets the watcher look a last time.
func (w *Watcher) Close() error {
	w.stay.Close()
	<-w.done
	if w.err != nil {
		return fmt.Errorf("the process that removes containers: %w", w.err)
	}
	return nil
}

// patience is how long the watcher tries, and how long a removal may take: the engine may be busy, or start again.
const patience = time.Minute

// Done returns a channel that is closed when the watcher has ended, which it does by itself only when it is killed.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// removeRemains waits for the end of the simulator, which is that of standard input, and then
// removes what is left. Its arguments are an engine's address and a label.
func removeRemains(args []string) int {
	if len(args) != 2 {
		return 1
	}
	address, label := args[0], args[1]
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	api, err := client.New(client.WithHost(address))
	if err != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := sweep(ctx, api, label)
		switch {
		case err == nil:
			return 0
		case client.IsErrConnectionFailed(err):
			return 0 // and its containers ended with it, or the next run finds them
		}
		if retry.Sleep(ctx, time.Second) != nil {
			return 1
		}
	}
}

const atOnce = 8

// labelled returns the filter for what has a label: "name" or "name=value".
func labelled(label string) client.Filters { return client.Filters{}.Add("label", label) }

// sweep removes containers and volumes with a label.
func sweep(ctx context.Context, api *client.Client, label string) error {
	list, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled(label)})
	if err != nil {
		return err
	}
	errs := make([]error, len(list.Items))
	var removing sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, c := range list.Items {
		room <- struct{}{}
		removing.Go(func() {
			errs[i] = remove(ctx, api, c.ID)
			<-room
		})
	}
	removing.Wait()
	volumes, err := api.VolumeList(ctx, client.VolumeListOptions{Filters: labelled(label)})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, v := range volumes.Items {
		if _, err := api.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true}); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removal is how often the engine is asked to remove a container: it refuses while
// another process does, or before it has noticed the container's end.
const removal = 100

// remove kills and removes a container, and waits a minute at most until it is gone.
func remove(ctx context.Context, api *client.Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for tries := 0; ; tries++ {
		_, err := api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case client.IsErrConnectionFailed(err) || ctx.Err() != nil || tries == removal:
			return err
		}
		if err := retry.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
