package runtime

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Bind shows a file or directory of the host, read-only, in a container.
type Bind struct {
	Source string `json:"s"`
	Target string `json:"t"`
}

// NotFoundError means that something the image lists is not on this host: the
// image cannot be "pulled".
type NotFoundError struct {
	Image, Target, Source string
	Err                   error
}

// Error names the image and both paths.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("image %q: %s (%s on this host): %v", e.Image, e.Target, e.Source, e.Err)
}

// Unwrap returns the reason.
func (e *NotFoundError) Unwrap() error { return e.Err }

// Resolver finds what images list. It remembers the libraries of a program
// until the program changes. It is safe for concurrent use.
type Resolver struct {
	mu    sync.Mutex
	known map[programKey][]Bind
}

type programKey struct {
	Bind
	size    int64
	changed time.Time
}

// Binds returns the image's read-only mounts, sorted by target, each target
// once, sources absolute. The error is a *NotFoundError, or names what is wrong in the image.
func (r *Resolver) Binds(i Image) ([]Bind, error) {
	if err := i.Validate(); err != nil {
		return nil, err
	}
	targets := map[string]string{}
	for _, target := range slices.Sorted(maps.Keys(i.Programs)) {
		program := Bind{Source: i.Programs[target], Target: target}
		libraries, err := r.Libraries(program)
		if err != nil {
			return nil, &NotFoundError{i.Name, target, program.Source, err}
		}
		for _, b := range libraries {
			targets[b.Target] = b.Source
		}
	}
	for target, source := range i.Files {
		if _, err := os.Stat(source); err != nil {
			return nil, &NotFoundError{i.Name, target, source, reason(err)}
		}
		targets[target] = source
	}
	maps.Copy(targets, i.Programs) // what is listed wins over what is found
	binds := make([]Bind, 0, len(targets))
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		source, err := filepath.Abs(targets[target])
		if err != nil {
			return nil, &NotFoundError{i.Name, target, targets[target], err}
		}
		binds = append(binds, Bind{Source: source, Target: target})
	}
	return binds, nil
}

// Libraries returns what a program needs beside itself: dynamic loader, shared
// libraries and the loader's cache.
func (r *Resolver) Libraries(program Bind) ([]Bind, error) {
	st, err := os.Stat(program.Source)
	if err != nil {
		return nil, reason(err)
	}
	if !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("not an executable file: %w", fs.ErrPermission)
	}
	key := programKey{program, st.Size(), st.ModTime()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if binds, ok := r.known[key]; ok {
		return binds, nil
	}
	binds, err := dependencies(program)
	if err != nil {
		return nil, err
	}
	if r.known == nil {
		r.known = map[programKey][]Bind{}
	}
	r.known[key] = binds
	return binds, nil
}

func reason(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}
