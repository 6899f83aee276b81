package images

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
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	engineimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/meshtask/consul-ecs/localecs/docker/archive"
	"github.com/meshtask/consul-ecs/localecs/docker/plain"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
)

// label is on images that were made of programs, with their name.
const label = "localecs.image"

// Store is the images that an engine has, or gets. It is safe for concurrent use.
type Store struct {
	api      *client.Client
	defined  map[string]image.Image
	resolver image.Resolver
	// getting is held by one at a time: images share layers.
	getting sync.Mutex

	mu  sync.Mutex
	got map[string]pulled // by name
}

// pulled is an image that the engine has.
type pulled struct {
	id    string
	image image.Image
}

// New is the images of an engine, of which the defined ones, by name, are made of
// programs of this host.
func New(api *client.Client, defined map[string]image.Image) *Store {
	return &Store{api: api, defined: defined, got: map[string]pulled{}}
}

// Pull makes an image of this host's programs, or gets it from where the engine
// gets images when it has none of that name. What is returned has the image's
// defaults. The error is an *image.NotFoundError when a program is not there.
func (s *Store) Pull(name string) (image.Image, error) {
	got, err := s.pull(name)
	return got.image, err
}

// ID is the engine's for an image that Pull has got, or gets.
func (s *Store) ID(name string) (string, error) {
	got, err := s.pull(name)
	return got.id, err
}

// Forget says that somebody has taken an image away.
func (s *Store) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.got, name)
}

func (s *Store) pull(name string) (pulled, error) {
	s.getting.Lock()
	defer s.getting.Unlock()
	s.mu.Lock()
	known, ok := s.got[name]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	got, err := s.get(context.Background(), name)
	if err != nil {
		return pulled{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[name] = got
	return got, nil
}

func (s *Store) get(ctx context.Context, name string) (pulled, error) {
	if i, ok := s.defined[name]; ok {
		id, err := s.Make(ctx, i)
		return pulled{id, i}, err
	}
	found, err := s.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		if err := s.fetch(ctx, name); err != nil {
			return pulled{}, err
		}
		found, err = s.api.ImageInspect(ctx, name)
	}
	if err != nil {
		return pulled{}, plain.Error(err)
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
func (s *Store) fetch(ctx context.Context, name string) error {
	progress, err := s.api.ImagePull(ctx, name, engineimage.PullOptions{})
	if err != nil {
		return plain.Error(err)
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

// IsDir tells directories, which may have all that a machine has: they are shown to
// containers and are in no image.
func IsDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// Make makes an image of programs, unless the engine has it, and takes earlier ones
// of that name away that nobody uses. It returns the image's ID.
func (s *Store) Make(ctx context.Context, i image.Image) (string, error) {
	binds, err := s.resolver.Binds(i)
	if err != nil {
		return "", err
	}
	binds = slices.DeleteFunc(binds, func(b image.Bind) bool { return IsDir(b.Source) })
	a, err := archive.New(repository(i.Name), i, binds, map[string]string{label: i.Name})
	if err != nil {
		return "", err
	}
	_, err = s.api.ImageInspect(ctx, a.ID)
	switch {
	case err == nil:
		return a.ID, nil
	case !errdefs.IsNotFound(err):
		return "", plain.Error(err)
	}
	if err := s.load(ctx, a); err != nil {
		return "", fmt.Errorf("load image %q into the Docker engine: %w", i.Name, err)
	}
	s.supersede(ctx, i.Name, a.ID)
	return a.ID, nil
}

func (s *Store) load(ctx context.Context, a *archive.Archive) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(a.Write(write)) }()
	defer read.Close()
	answer, err := s.api.ImageLoad(ctx, read)
	if err != nil {
		return plain.Error(err)
	}
	defer answer.Body.Close()
	return told(answer.Body)
}

// supersede removes images made earlier under a name. The engine keeps those that
// containers use, and that is all right.
func (s *Store) supersede(ctx context.Context, name, id string) {
	list, err := s.api.ImageList(ctx, engineimage.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label+"="+name))})
	if err != nil {
		return
	}
	for _, i := range list {
		if i.ID != id {
			_, _ = s.api.ImageRemove(ctx, i.ID, engineimage.RemoveOptions{PruneChildren: true})
		}
	}
}

// repository is how the engine lists an image that was made of programs.
func repository(name string) string {
	last := strings.ToLower(path.Base(strings.ReplaceAll(name, "@", "/")))
	last, _, _ = strings.Cut(last, ":")
	clean := strings.Trim(strings.Map(plain.Rune, last), "._-")
	if clean == "" {
		clean = "image"
	}
	return "localecs/" + clean + ":latest"
}
