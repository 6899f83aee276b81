package consulutil

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/aclrules"
)

// ErrNoAuthorize means that the server has no authorize endpoint, which is internal to
// Consul and may be removed.
var ErrNoAuthorize = errors.New("the server has no /v1/internal/acl/authorize")

// ErrNoNamespaces means that the server has neither namespaces nor partitions: it is not
// Consul Enterprise.
var ErrNoNamespaces = errors.New("the Consul server is not Consul Enterprise, which namespaces and partitions need")

// authorizeBatch is how many queries the server takes at once.
const authorizeBatch = 64

// maxAnswer bounds an answer of the endpoint, in bytes.
const maxAnswer = 1 << 20

// Authorizer asks a Consul server what a token may do, to compare with package
// aclrules.
type Authorizer struct {
	http                 *http.Client
	url                  string
	namespace, partition string
}

// NewAuthorizer returns an Authorizer for the server of the options, which asks those of another
// datacenter unless the name is empty. A namespace or partition of the options is that
// of each query.
func NewAuthorizer(o Options, datacenter string) (*Authorizer, error) {
	c, err := NewConfig(o)
	if err != nil {
		return nil, err
	}
	base := c.Address
	if !strings.Contains(base, "://") {
		base = c.Scheme + "://" + base
	}
	query := ""
	if datacenter != "" {
		query = "?" + url.Values{"dc": {datacenter}}.Encode()
	}
	return &Authorizer{c.HttpClient, strings.TrimSuffix(base, "/") + "/v1/internal/acl/authorize" + query, o.Namespace,
		o.Partition}, nil
}

// judged is a query in the form of the endpoint's request and answer.
type judged struct {
	Resource, Segment, Access string
	Namespace, Partition      string `json:",omitempty"`
	Allow                     bool   `json:",omitempty"`
}

// Authorize returns for each query whether the token allows it; an empty token
// is the anonymous one. The error is ErrNoAuthorize, ErrNoNamespaces, or an api.StatusError, or
// that of the transport.
func (a *Authorizer) Authorize(ctx context.Context, token string, queries []aclrules.Query) ([]bool, error) {
	var allowed []bool
	for batch := range slices.Chunk(queries, authorizeBatch) {
		answers, err := a.batch(ctx, token, batch)
		if err != nil {
			return nil, fmt.Errorf("check the token's permissions at the server: %w", err)
		}
		allowed = append(allowed, answers...)
	}
	return allowed, nil
}

func (a *Authorizer) batch(ctx context.Context, token string, queries []aclrules.Query) ([]bool, error) {
	asked := make([]judged, len(queries))
	for i, q := range queries {
		asked[i] = judged{Resource: string(q.Resource), Segment: q.Segment, Access: string(q.Access),
			Namespace: a.namespace, Partition: a.partition}
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	answer, err := a.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusNotFound:
		return nil, ErrNoAuthorize
	case answer.StatusCode == http.StatusBadRequest && a.namespace+a.partition != "":
		return nil, ErrNoNamespaces
	case answer.StatusCode != http.StatusOK:
		return nil, api.StatusError{Code: answer.StatusCode, Body: strings.TrimSpace(string(text))}
	}
	return verdicts(text, asked)
}

// verdicts reads the answer, and checks that it matches the queries.
func verdicts(text []byte, asked []judged) ([]bool, error) {
	var got []judged
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(got) != len(asked) {
		return nil, fmt.Errorf("got %d results for %d queries", len(got), len(asked))
	}
	allowed := make([]bool, len(got))
	for i, g := range got {
		allowed[i] = g.Allow
		g.Allow = false
		if g != asked[i] {
			return nil, fmt.Errorf("got a result for %s %q %s, want one for %s %q %s",
				g.Resource, g.Segment, g.Access, asked[i].Resource, asked[i].Segment, asked[i].Access)
		}
	}
	return allowed, nil
}
