package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Wanted is an image to read.
type Wanted struct {
	// Reference is as a definition writes it.
	Reference string
	// Where names a place that needs the image, for messages. It may be empty.
	Where string
	// Architecture is what the task there has, X86_64 or ARM64; empty when it has none.
	Architecture string
}

// Options are where images are read.
type Options struct {
	// From are read in place of a registry, for the references that they have.
	From []*Source
	// Timeout bounds the reading of one image from its registry or a copy.
	Timeout time.Duration
	// PlainHTTP are registries without TLS, as host or host:port. Those of the loopback
	// interface need not be named.
	PlainHTTP []string
	// Keychain has the credentials of registries.
	Keychain authn.Keychain
	// Transport carries the requests.
	Transport http.RoundTripper
	// Report is called for each image that was read, one call at a time. It may be nil.
	Report func(reference string, image taskdef.LockedImage)
}

// parallel is how many images are read at the same time: registries limit more.
const parallel = 4

// Lock reads all images. The error joins a *Failure for each image that could not be read, or
// that lacks the architecture of a task, in the order in which they are wanted.
func Lock(ctx context.Context, wanted []Wanted, o Options) (*taskdef.ImageLock, error) {
	registries := newRegistries(o)
	read := unique(wanted)
	results := make([]result, len(read))
	finished := make(chan int)
	var group errgroup.Group
	group.SetLimit(parallel)
	go func() {
		for i, w := range read {
			group.Go(func() error {
				results[i] = lockOne(ctx, w.Reference, o, registries)
				finished <- i
				return nil
			})
		}
		_ = group.Wait() // each result has its own error
		close(finished)
	}()
	for i := range finished {
		if results[i].err == nil && o.Report != nil {
			o.Report(read[i].Reference, results[i].image)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return collect(wanted, read, results)
}

// result is what became of an image.
type result struct {
	image taskdef.LockedImage
	err   error
}

// lockOne reads one image where it is found first.
func lockOne(ctx context.Context, reference string, o Options, registries *registries) result {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, &timeoutError{o.Timeout})
	defer cancel()
	for _, source := range o.From {
		root, store, err := source.open(ctx, reference)
		if errors.Is(err, errNotHere) {
			continue
		}
		if err != nil {
			return result{err: fmt.Errorf("%s: %w", source.path, err)}
		}
		image, err := resolve(ctx, root, store)
		if err != nil {
			err = fmt.Errorf("%s: %w", source.path, err)
		}
		return result{image, err}
	}
	root, store, err := registries.open(ctx, reference)
	if err != nil {
		return result{err: err}
	}
	image, err := resolve(ctx, root, store)
	if err != nil {
		err = store.explain(ctx, err)
	}
	return result{image, err}
}

// unique returns each image once, however it is spelled.
func unique(wanted []Wanted) []Wanted {
	var read []Wanted
	for _, w := range wanted {
		if indexOf(read, w.Reference) < 0 {
			read = append(read, w)
		}
	}
	return read
}

// indexOf returns the index of an image, or -1.
func indexOf(read []Wanted, reference string) int {
	wanted := taskdef.NormalizeImage(reference)
	return slices.IndexFunc(read, func(w Wanted) bool { return taskdef.NormalizeImage(w.Reference) == wanted })
}

// collect makes the lock of all references, in all their spellings.
func collect(wanted, read []Wanted, results []result) (*taskdef.ImageLock, error) {
	lock := &taskdef.ImageLock{Version: taskdef.ImageLockVersion, Images: map[string]taskdef.LockedImage{}}
	failed := map[string]bool{}
	var failures []error
	for _, w := range wanted {
		i := indexOf(read, w.Reference)
		image, err := results[i].image, results[i].err
		lock.Images[w.Reference] = image
		kind := read[i].Reference
		if err == nil {
			err = checkArchitecture(image, w.Architecture)
			kind += " " + w.Architecture
		}
		if err != nil && !failed[kind] {
			failures = append(failures, &Failure{Image: w.Reference, Where: w.Where, Err: err})
			failed[kind] = true
		}
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	return lock, nil
}

// checkArchitecture reports that an image cannot run in a task of an architecture.
func checkArchitecture(image taskdef.LockedImage, architecture string) error {
	if _, has := image.Config(architecture); has || architecture == "" {
		return nil
	}
	return fmt.Errorf("the task has cpuArchitecture %s, the image is for %s: build it for both, or set "+
		"runtimePlatform.cpuArchitecture",
		architecture, strings.Join(image.PlatformNames(), ", "))
}
