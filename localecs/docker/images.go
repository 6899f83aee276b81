package docker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// label is on images that were made of programs, with their name.
const label = "localecs.image"

// store is the images that an engine has, or gets. It is safe for concurrent use.
type store struct {
	api      *client.Client
	defined  runtime.Images
	resolver runtime.Resolver
	log      hclog.Logger
	// loading is held by one at a time: images share layers.
	loading sync.Mutex

	mu      sync.Mutex
	flights map[string]*flight // by name
}

type pulled struct {
	id    string
	image runtime.Image
}

// newStore returns the images of an engine. The defined ones, by name, are made of programs of this host.
func newStore(api *client.Client, defined runtime.Images, log hclog.Logger) *store {
	return &store{api: api, defined: defined, log: log, flights: map[string]*flight{}}
}

// Pull makes an image of this host's programs, or has the engine pull it when it has none of that name, until ctx ends.
// The result has the image's defaults. The error is an *runtime.NotFoundError when a program does not exist.
func (s *store) Pull(ctx context.Context, name string) (runtime.Image, error) {
	got, err := s.pull(ctx, name)
	return got.image, err
}

// imageID returns the engine's for an image, which is pulled if need be.
func (s *store) imageID(ctx context.Context, name string) (string, error) {
	got, err := s.pull(ctx, name)
	return got.id, err
}

// forget removes an image from the store, so that it is pulled anew: another process has removed it.
func (s *store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, name)
}

func (s *store) get(ctx context.Context, name string) (pulled, error) {
	if i, ok := s.defined.Find(name); ok {
		id, err := s.makeImage(ctx, i)
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
		return pulled{}, engineError(err)
	}
	return pulled{found.ID, defaults(name, found)}, nil
}

// defaults returns what the scheduler and the definition need of an image.
func defaults(name string, found client.ImageInspectResult) runtime.Image {
	i := runtime.Image{Name: name}
	if c := found.Config; c != nil {
		i.Env, i.Entrypoint, i.Cmd, i.StopSignal = c.Env, c.Entrypoint, c.Cmd, c.StopSignal
		i.WorkingDir, i.User = c.WorkingDir, c.User
		for _, p := range slices.Sorted(maps.Keys(c.Volumes)) {
			i.Volumes = append(i.Volumes, runtime.Dir{Path: p})
		}
	}
	return i
}

// isDir reports whether a path is a directory, which may have all that a machine
// has: directories are mounted into containers and are in no image.
func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// makeImage makes an image of programs, unless the engine has it, and removes unused
// earlier ones of that name. It returns the image's ID.
func (s *store) makeImage(ctx context.Context, i runtime.Image) (string, error) {
	binds, err := s.resolver.Binds(i)
	if err != nil {
		return "", err
	}
	binds = slices.DeleteFunc(binds, func(b runtime.Bind) bool { return isDir(b.Source) })
	a, err := newArchive(repository(i.Name), i, binds, map[string]string{label: i.Name})
	if err != nil {
		return "", err
	}
	id := a.ID.String()
	_, err = s.api.ImageInspect(ctx, id)
	switch {
	case err == nil:
		return id, nil
	case !errdefs.IsNotFound(err):
		return "", engineError(err)
	}
	if err := s.load(ctx, a); err != nil {
		return "", fmt.Errorf("load image %q into the Docker engine: %w", i.Name, err)
	}
	s.supersede(ctx, i.Name, id)
	return id, nil
}

func (s *store) load(ctx context.Context, a *archive) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	return whileProgressing(ctx, func(ctx context.Context, progressed func()) error {
		read, write := io.Pipe()
		go func() { write.CloseWithError(a.Write(write)) }()
		defer read.Close()
		answer, err := s.api.ImageLoad(ctx, observed{read, progressed})
		if err != nil {
			return engineError(err)
		}
		defer answer.Close()
		return follow(answer, func(line) { progressed() })
	})
}

type observed struct {
	from io.Reader
	read func()
}

// Read reads.
func (o observed) Read(b []byte) (int, error) {
	o.read()
	return o.from.Read(b)
}

// supersede removes images made earlier under a name. The engine keeps those that containers use.
func (s *store) supersede(ctx context.Context, name, id string) {
	list, err := s.api.ImageList(ctx, client.ImageListOptions{All: true, Filters: labelled(label + "=" + name)})
	if err != nil {
		return
	}
	for _, i := range list.Items {
		if i.ID != id {
			_, _ = s.api.ImageRemove(ctx, i.ID, client.ImageRemoveOptions{PruneChildren: true})
		}
	}
}

func repository(name string) string {
	last := strings.ToLower(path.Base(strings.ReplaceAll(name, "@", "/")))
	last, _, _ = strings.Cut(last, ":")
	clean := cmp.Or(strings.Trim(strings.Map(allowedRune, last), "._-"), "image")
	return "localecs/" + clean + ":latest"
}
