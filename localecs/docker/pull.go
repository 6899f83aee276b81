package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	engineimage "github.com/docker/docker/api/types/image"
	"github.com/meshtask/consul-ecs/localecs/docker/archive"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
)

// pulled is an image that the engine has.
type pulled struct {
	id    string
	image image.Image
}

// Pull makes an image of this host's programs, or gets it from where the engine
// gets images when it has none of that name. What is returned has the image's
// defaults. The error is an *image.NotFoundError when a program is not there.
func (e *Engine) Pull(name string) (image.Image, error) {
	e.pulling.Lock()
	defer e.pulling.Unlock()
	e.mu.Lock()
	known, ok := e.pulled[name]
	e.mu.Unlock()
	if ok {
		return known.image, nil
	}
	got, err := e.get(context.Background(), name)
	if err != nil {
		return image.Image{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pulled[name] = got
	return got.image, nil
}

func (e *Engine) get(ctx context.Context, name string) (pulled, error) {
	if i, ok := e.options.Images[name]; ok {
		id, err := e.make(ctx, i)
		return pulled{id, i}, err
	}
	found, err := e.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		if err := e.fetch(ctx, name); err != nil {
			return pulled{}, err
		}
		found, err = e.api.ImageInspect(ctx, name)
	}
	if err != nil {
		return pulled{}, plainError(err)
	}
	return pulled{found.ID, defaults(name, found)}, nil
}

// defaults are what the scheduler and the definition need to know of an image.
func defaults(name string, found engineimage.InspectResponse) image.Image {
	i := image.Image{Name: name}
	if c := found.Config; c != nil {
		i.Env, i.Entrypoint, i.Cmd, i.StopSignal = c.Env, c.Entrypoint, c.Cmd, c.StopSignal
		i.WorkingDir, i.User = c.WorkingDir, c.User
		for _, p := range slices.Sorted(maps.Keys(c.Volumes)) {
			i.Volumes = append(i.Volumes, image.Dir{Path: p})
		}
	}
	return i
}

// fetch lets the engine pull.
func (e *Engine) fetch(ctx context.Context, name string) error {
	progress, err := e.api.ImagePull(ctx, name, engineimage.PullOptions{})
	if err != nil {
		return plainError(err)
	}
	defer progress.Close()
	return told(progress)
}

// told is the error in what an engine says while it works.
func told(progress io.Reader) error {
	for lines := json.NewDecoder(progress); ; {
		var line struct{ Error string }
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the engine's progress: %w", err)
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

// isDir tells directories, which may have all that a machine has: they are shown to
// containers and are in no image.
func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// make makes an image of programs, unless the engine has it, and takes earlier ones
// of that name away that nobody uses. It returns the image's ID.
func (e *Engine) make(ctx context.Context, i image.Image) (string, error) {
	binds, err := e.resolver.Binds(i)
	if err != nil {
		return "", err
	}
	binds = slices.DeleteFunc(binds, func(b image.Bind) bool { return isDir(b.Source) })
	a, err := archive.New(repository(i.Name), i, binds, map[string]string{labelImage: i.Name})
	if err != nil {
		return "", err
	}
	_, err = e.api.ImageInspect(ctx, a.ID)
	switch {
	case err == nil:
		return a.ID, nil
	case !errdefs.IsNotFound(err):
		return "", plainError(err)
	}
	if err := e.load(ctx, a); err != nil {
		return "", fmt.Errorf("load image %q into the Docker engine: %w", i.Name, err)
	}
	e.supersede(ctx, i.Name, a.ID)
	return a.ID, nil
}

func (e *Engine) load(ctx context.Context, a *archive.Archive) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(a.Write(write)) }()
	defer read.Close()
	answer, err := e.api.ImageLoad(ctx, read)
	if err != nil {
		return plainError(err)
	}
	defer answer.Body.Close()
	return told(answer.Body)
}

// supersede removes images made earlier under a name. The engine keeps those that
// containers use, and that is all right.
func (e *Engine) supersede(ctx context.Context, name, id string) {
	list, err := e.api.ImageList(ctx, engineimage.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelImage+"="+name))})
	if err != nil {
		return
	}
	for _, i := range list {
		if i.ID != id {
			_, _ = e.api.ImageRemove(ctx, i.ID, engineimage.RemoveOptions{PruneChildren: true})
		}
	}
}

// repository is how the engine lists an image that was made of programs.
func repository(name string) string {
	last := strings.ToLower(path.Base(strings.ReplaceAll(name, "@", "/")))
	last, _, _ = strings.Cut(last, ":")
	clean := strings.Trim(strings.Map(plain, last), "._-")
	if clean == "" {
		clean = "image"
	}
	return "localecs/" + clean + ":latest"
}

// plainError drops the words that say through whom an error came.
func plainError(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "Error response from daemon: "); ok {
		return errors.New(text)
	}
	return err
}
