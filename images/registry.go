package images

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registries reads from all registries, and logs in once per repository.
type registries struct {
	puller    *remote.Puller
	plainHTTP []string
}

func newRegistries(o Options) (*registries, error) {
	puller, err := remote.NewPuller(
		remote.WithAuthFromKeychain(patient{o.Keychain}),
		remote.WithTransport(&guarded{o.Transport, o.PlainHTTP}),
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 3}),
	)
	return &registries{puller, o.PlainHTTP}, err
}

// open reads the manifest or the index of a reference.
func (r *registries) open(ctx context.Context, reference string) (manifest, *repository, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return manifest{}, nil, fmt.Errorf("it is no reference of an image: %w", err)
	}
	if slices.Contains(r.plainHTTP, ref.Context().RegistryStr()) {
		ref, _ = name.ParseReference(reference, name.Insecure) // was parsed before
	}
	from := &repository{r.puller, ref.Context()}
	got, err := r.puller.Get(ctx, ref)
	if err != nil {
		return manifest{}, nil, from.explain(ctx, err)
	}
	return manifest{got.Digest, got.MediaType, got.Manifest}, from, nil
}

// repository is a store.
type repository struct {
	puller *remote.Puller
	name   name.Repository
}

func (r *repository) manifest(ctx context.Context, of v1.Descriptor) (manifest, error) {
	got, err := r.puller.Get(ctx, r.name.Digest(of.Digest.String()))
	if err != nil {
		return manifest{}, err
	}
	return manifest{got.Digest, got.MediaType, got.Manifest}, nil
}

func (r *repository) config(ctx context.Context, of v1.Descriptor) ([]byte, error) {
	if of.Data != nil {
		return of.Data, nil
	}
	blob, err := r.puller.Layer(ctx, r.name.Digest(of.Digest.String()))
	if err != nil {
		return nil, err
	}
	content, err := blob.Compressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return readLimited(content)
}

// readLimited reads a document that is not larger than documents are.
func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("its configuration or manifest is larger than %d MiB", maxDocument>>20)
	}
	return data, err
}

// explain states which registry failed, and the cure.
func (r *repository) explain(ctx context.Context, err error) error {
	return explain(ctx, r.name.RegistryStr(), err)
}

// patient is a keychain whose credential helpers may hang: waiting for them ends with the
// context.
type patient struct{ authn.Keychain }

// ResolveContext implements authn.ContextKeychain.
func (p patient) ResolveContext(ctx context.Context, of authn.Resource) (authn.Authenticator, error) {
	type answer struct {
		credentials authn.Authenticator
		err         error
	}
	answered := make(chan answer, 1)
	go func() {
		credentials, err := authn.Resolve(ctx, p.Keychain, of)
		answered <- answer{credentials, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, &credentialError{a.err}
		}
		return a.credentials, nil
	case <-ctx.Done():
		return nil, &credentialError{context.Cause(ctx)}
	}
}

// guarded refuses plain HTTP to other machines, unless it is allowed: the credentials would
// be readable on the way.
type guarded struct {
	inner     http.RoundTripper
	plainHTTP []string
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !isLoopback(req.URL.Hostname()) && !slices.Contains(g.plainHTTP, req.URL.Host) {
		return nil, errPlainHTTP
	}
	return g.inner.RoundTrip(req)
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
