package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// registries reads from all registries.
type registries struct {
	keychain  authn.Keychain
	transport http.RoundTripper
	plainHTTP []string
}

// newRegistries returns a reader that repeats what may succeed a moment later.
func newRegistries(o Options) *registries {
	repeating := transport.NewRetry(&obedient{&guarded{o.Transport, o.PlainHTTP}},
		transport.WithRetryBackoff(transport.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Jitter: 0.1,
			Steps: 3}),
		transport.WithRetryStatusCodes(http.StatusRequestTimeout, http.StatusTooManyRequests,
			http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout),
	)
	return &registries{patient{o.Keychain}, repeating, o.PlainHTTP}
}

// open logs in and reads the manifest or the index of a reference.
func (r *registries) open(ctx context.Context, reference string) (manifest, *repository, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return manifest{}, nil, fmt.Errorf("it is no reference of an image: %w", err)
	}
	if slices.Contains(r.plainHTTP, ref.Context().RegistryStr()) {
		ref, _ = name.ParseReference(reference, name.Insecure) // was parsed before
	}
	from := &repository{name: ref.Context()}
	credentials, err := authn.Resolve(ctx, r.keychain, from.name)
	if err != nil {
		return manifest{}, nil, from.explain(ctx, err)
	}
	scopes := []string{from.name.Scope(transport.PullScope)}
	if from.transport, err = transport.NewWithContext(ctx, from.name.Registry, credentials, r.transport,
		scopes); err != nil {
		return manifest{}, nil, from.explain(ctx, err)
	}
	m, err := from.read(ctx, ref.Identifier())
	if err != nil {
		return manifest{}, nil, from.explain(ctx, err)
	}
	return m, from, nil
}

// repository is a store.
type repository struct {
	name      name.Repository
	transport http.RoundTripper
}

func (r *repository) manifest(ctx context.Context, of v1.Descriptor) (manifest, error) {
	return r.read(ctx, of.Digest.String())
}

// read reads a manifest or an index by tag or digest.
func (r *repository) read(ctx context.Context, identifier string) (manifest, error) {
	raw, mediaType, err := r.get(ctx, "manifests", identifier)
	if err != nil {
		return manifest{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err == nil && strings.Contains(identifier, ":") { // no tag
		err = checkDigest(identifier, digest)
	}
	return manifest{digest, types.MediaType(mediaType), raw}, err
}

func (r *repository) config(ctx context.Context, of v1.Descriptor) ([]byte, error) {
	raw, _, err := r.get(ctx, "blobs", of.Digest.String())
	if err != nil {
		return nil, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return raw, checkDigest(of.Digest.String(), digest)
}

// checkDigest reports an object that is not what was asked for, or cannot be compared with it.
func checkDigest(wanted string, got v1.Hash) error {
	if !strings.HasPrefix(wanted, got.Algorithm+":") {
		return fmt.Errorf("object %s cannot be checked: want a digest by %s", wanted, got.Algorithm)
	}
	if got.String() != wanted {
		return fmt.Errorf("object %s is damaged: its digest is %s", wanted, got)
	}
	return nil
}

// get reads a document of the repository, and its type.
func (r *repository) get(ctx context.Context, kind, identifier string) (raw []byte, mediaType string, err error) {
	address := fmt.Sprintf("%s://%s/v2/%s/%s/%s", r.name.Scheme(), r.name.RegistryStr(),
		r.name.RepositoryStr(), kind, identifier)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	if kind == "manifests" {
		req.Header.Set("Accept", strings.Join([]string{
			string(types.OCIImageIndex), string(types.DockerManifestList), string(types.OCIManifestSchema1),
			string(types.DockerManifestSchema2), string(types.DockerManifestSchema1Signed),
			string(types.DockerManifestSchema1),
		}, ","))
	}
	resp, err := (&http.Client{Transport: r.transport}).Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return nil, "", err
	}
	raw, err = readLimited(resp.Body)
	if err != nil && !errors.Is(err, errTooLarge) {
		err = &url.Error{Op: "Get", URL: address, Err: err} // as a failure before the body is
	}
	return raw, resp.Header.Get("Content-Type"), err
}

// errTooLarge is about a document that is larger than documents are.
var errTooLarge = fmt.Errorf("its configuration or manifest is larger than %d MiB", maxDocument>>20)

// readLimited reads a document that is not larger than documents are.
func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = errTooLarge
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
		return nil, &plainHTTPError{req.URL.Host}
	}
	return g.inner.RoundTrip(req)
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
