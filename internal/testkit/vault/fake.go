package vault

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// fake is a Vault server as far as the token broker and the tests of it use one, with a
// clock that tests move. Its statuses and texts are OpenBao's.
type fake struct {
	root, unsealKey string

	mu         sync.Mutex
	passed     time.Duration // how far its clock is ahead
	sealed     bool
	namespaces map[string]*namespace
	tokens     map[string]*token
	wraps      map[string]wrapped
}

// namespace has the policies and token roles of a namespace.
type namespace struct {
	policies map[string]string
	roles    map[string]body
}

// wrapped is an answer behind a wrapping token.
type wrapped struct {
	created time.Time
	ttl     time.Duration
	path    string
	answer  answer
}

// answer is the JSON of a success, and nil one without a body.
type answer map[string]any

// refusal is an answer with an error, or with none if the text is empty.
type refusal struct {
	status int
	text   string
}

var (
	badToken       = &refusal{http.StatusForbidden, "permission denied"}
	denied         = &refusal{http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n"}
	notFound       = &refusal{status: http.StatusNotFound}
	invalidWrapper = &refusal{http.StatusBadRequest, "wrapping token is not valid or does not exist"}
)

// body is what requests carry; each uses some of it.
type body struct {
	Token, Key, Policy  string
	Accessor            string
	Policies            []string
	Period, TTL         string
	DisplayName         string `json:"display_name"`
	Meta                map[string]string
	AllowedPoliciesGlob []string `json:"allowed_policies_glob"`
	Orphan              bool
	Renewable           *bool // of a role; nil for true
}

// request is a request of an authenticated caller; caller is nil without one.
type request struct {
	method, path, wrapTTL, secret string
	namespace                     string
	caller                        *token
	body
}

func newFake() *fake {
	f := &fake{
		unsealKey:  rand.Text(),
		namespaces: map[string]*namespace{"": newNamespace()},
		tokens:     map[string]*token{}, wraps: map[string]wrapped{},
	}
	f.root = f.add(&token{policies: []string{"root"}}).secret
	return f
}

func newNamespace() *namespace {
	return &namespace{policies: map[string]string{"default": defaultPolicy}, roles: map[string]body{}}
}

// defaultPolicy is what matters here of Vault's policy of that name.
const defaultPolicy = `path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/renew-self" { capabilities = ["update"] }
path "auth/token/revoke-self" { capabilities = ["update"] }
path "sys/wrapping/lookup" { capabilities = ["update"] }`

func (f *fake) now() time.Time { return time.Now().Add(f.passed) }

func (f *fake) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed += d
}

// ServeHTTP answers one request at a time.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, isAPI := strings.CutPrefix(r.URL.Path, "/v1/")
	if !isAPI {
		Refuse(w, http.StatusNotFound)
		return
	}
	in := request{
		method: r.Method, path: path, wrapTTL: r.Header.Get("X-Vault-Wrap-TTL"),
		secret: r.Header.Get("X-Vault-Token"), namespace: strings.Trim(r.Header.Get("X-Vault-Namespace"), "/"),
	}
	if in.method == http.MethodPut {
		in.method = http.MethodPost
	}
	if r.ContentLength > 0 {
		if err := json.NewDecoder(r.Body).Decode(&in.body); err != nil {
			Refuse(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	out, refused := f.serve(&in)
	switch {
	case refused != nil && refused.text == "":
		Refuse(w, refused.status)
	case refused != nil:
		Refuse(w, refused.status, refused.text)
	case out == nil:
		w.Header().Set("Cache-Control", "no-store") // as Vault does
		w.WriteHeader(http.StatusNoContent)
	default:
		if _, wrapped := out["request_id"]; !wrapped {
			out["request_id"] = rand.Text()
		}
		json.NewEncoder(w).Encode(out)
	}
}

// serve answers a request.
func (f *fake) serve(r *request) (answer, *refusal) {
	if r.method+" "+r.path == "POST sys/unseal" {
		f.sealed = f.sealed && r.Key != f.unsealKey
		return answer{"sealed": f.sealed}, nil
	}
	switch ns := f.namespaces[r.namespace]; {
	case f.sealed:
		return nil, &refusal{http.StatusServiceUnavailable, "Vault is sealed"}
	case ns == nil:
		return nil, &refusal{http.StatusNotFound, "namespace not found"}
	}
	switch r.path {
	case "sys/wrapping/unwrap":
		return f.unwrap(r)
	case "sys/wrapping/lookup":
		return f.lookupWrapped(r)
	}
	r.caller = f.live(r.secret)
	switch {
	case r.caller == nil:
		return nil, badToken
	case !f.permits(r):
		return nil, denied
	}
	if name, ok := strings.CutPrefix(r.path, "sys/policies/acl/"); ok {
		return f.policy(r, strings.ToLower(name))
	}
	if name, ok := strings.CutPrefix(r.path, "sys/namespaces/"); ok && r.namespace == "" {
		f.namespaces[name] = newNamespace()
		return answer{}, nil
	}
	if name, ok := strings.CutPrefix(r.path, "auth/token/roles/"); ok {
		f.namespaces[r.namespace].roles[name] = r.body
		return nil, nil
	}
	if r.method+" "+r.path == "POST sys/seal" {
		f.sealed = true
		return nil, nil
	}
	if !strings.HasPrefix(r.path, "auth/token/") {
		return nil, &refusal{
			http.StatusNotFound, fmt.Sprintf("no handler for route %q. route entry not found.", r.path),
		}
	}
	return f.serveToken(r)
}

// policy reads or writes a policy.
func (f *fake) policy(r *request, name string) (answer, *refusal) {
	policies := f.namespaces[r.namespace].policies
	if r.method == http.MethodPost {
		policies[name] = r.Policy
		return nil, nil
	}
	text, ok := policies[name]
	if !ok && name != "root" {
		return nil, notFound
	}
	return answer{"data": answer{"name": name, "policy": text}}, nil
}

var (
	pathBlock  = regexp.MustCompile(`(?s)path "([^"]+)" \{\s*capabilities = \[([^\]]*)\]\s*\}`)
	capability = regexp.MustCompile(`"([a-z]+)"`)
)

// capabilities returns what a token may do at a path: of the longest pattern that matches.
func (f *fake) capabilities(t *token, path string) []string {
	if slices.Contains(t.policies, "root") {
		return []string{"create", "read", "update", "delete", "list", "sudo"}
	}
	var all []string
	longest := -1
	for _, name := range t.policies {
		for _, block := range pathBlock.FindAllStringSubmatch(f.namespaces[t.namespace].policies[name], -1) {
			prefix, glob := strings.CutSuffix(block[1], "*")
			if block[1] != path && !(glob && strings.HasPrefix(path, prefix)) || len(prefix) < longest {
				continue
			}
			if len(prefix) > longest {
				all, longest = nil, len(prefix)
			}
			for _, c := range capability.FindAllStringSubmatch(block[2], -1) {
				all = append(all, c[1])
			}
		}
	}
	return all
}

// permits reports whether the caller may make the request. A token of a namespace has no
// rights in another one but over itself; root has.
func (f *fake) permits(r *request) bool {
	needed := "read"
	if r.method == http.MethodPost {
		needed = "update"
	}
	root := slices.Contains(r.caller.policies, "root") && r.caller.namespace == ""
	return (root || r.caller.namespace == r.namespace || strings.HasSuffix(r.path, "-self")) &&
		slices.Contains(f.capabilities(r.caller, r.path), needed)
}

// wrap puts an answer behind a wrapping token.
func (f *fake) wrap(r *request, a answer, accessor string) (answer, *refusal) {
	ttl, err := time.ParseDuration(r.wrapTTL + "s")
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	handle := "s." + rand.Text()
	a["request_id"] = "" // of a wrapped answer
	f.wraps[handle] = wrapped{f.now(), ttl, r.path, a}
	return answer{"wrap_info": answer{
		"token": handle, "ttl": int(ttl.Seconds()), "creation_time": f.now().Format(time.RFC3339Nano),
		"creation_path": r.path, "wrapped_accessor": accessor,
	}}, nil
}

func (f *fake) unwrap(r *request) (answer, *refusal) {
	handle := cmp.Or(r.body.Token, r.secret)
	w, ok := f.wraps[handle]
	delete(f.wraps, handle)
	if !ok || f.now().Sub(w.created) >= w.ttl {
		return nil, invalidWrapper
	}
	return w.answer, nil
}

func (f *fake) lookupWrapped(r *request) (answer, *refusal) {
	w, ok := f.wraps[cmp.Or(r.body.Token, r.secret)]
	if !ok || f.now().Sub(w.created) >= w.ttl {
		return nil, invalidWrapper
	}
	return answer{"data": answer{"creation_path": w.path, "creation_ttl": w.ttl.Seconds(), "creation_time": w.created}},
		nil
}

func badRequest(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}
