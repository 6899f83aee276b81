package vault

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// token is a token of the fake.
type token struct {
	secret, accessor, namespace string
	name, path                  string
	policies                    []string
	meta                        map[string]string
	period                      time.Duration
	expires                     time.Time // zero for never
	orphan, renewable           bool
}

// maxTTL is the life of a token that asks for none.
const maxTTL = 768 * time.Hour

// add gives a token its secret and accessor, which end with the namespace's ID.
func (f *fake) add(t *token) *token {
	t.secret, t.accessor = "s."+rand.Text(), rand.Text()
	if t.namespace != "" {
		t.secret, t.accessor = t.secret+"."+t.namespace, t.accessor+"."+t.namespace
	}
	f.tokens[t.secret] = t
	return t
}

func (f *fake) live(secret string) *token {
	t := f.tokens[secret]
	if t == nil || !t.expires.IsZero() && !f.now().Before(t.expires) {
		return nil
	}
	return t
}

func (f *fake) byAccessor(accessor string) *token {
	for secret, t := range f.tokens {
		if t.accessor == accessor {
			return f.live(secret)
		}
	}
	return nil
}

// serveToken answers a permitted request to the token store.
func (f *fake) serveToken(r *request) (answer, *refusal) {
	switch operation := r.method + " " + r.path; operation {
	case "POST auth/token/create-orphan":
		return f.create(r, nil)
	case "GET auth/token/lookup-self":
		return f.lookup(r.caller)
	case "POST auth/token/renew-self":
		return f.renew(r.caller)
	case "POST auth/token/revoke-self":
		return f.revoke(r.caller)
	case "POST auth/token/lookup-accessor":
		t := f.byAccessor(r.Accessor)
		if t == nil {
			return nil, badRequest("1 error occurred:\n\t* invalid accessor\n\n")
		}
		return f.lookup(t)
	case "POST auth/token/revoke-accessor":
		t := f.byAccessor(r.Accessor)
		if t == nil {
			return answer{"warnings": []string{"No token found with this accessor"}}, nil
		}
		return f.revoke(t)
	}
	if name, ok := strings.CutPrefix(r.path, "auth/token/create/"); ok && r.method == http.MethodPost {
		role, known := f.namespaces[r.namespace].roles[name]
		if !known {
			return nil, badRequest("unknown role %s", name)
		}
		return f.create(r, &role)
	}
	return nil, &refusal{http.StatusNotFound, "1 error occurred:\n\t* unsupported path\n\n"}
}

var unnamable = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// create makes a token, by a role unless that is nil.
func (f *fake) create(r *request, role *body) (answer, *refusal) {
	sudo := slices.Contains(f.capabilities(r.caller, r.path), "sudo")
	policies := sanitize(r.Policies)
	if refused := f.policiesPermitted(r.caller, policies, role, sudo); refused != nil {
		return nil, refused
	}
	period, err := time.ParseDuration(cmp.Or(r.Period, "0s"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if period > 0 && !sudo {
		return nil, badRequest("root or sudo privileges required to create periodic token")
	}
	ttl, err := time.ParseDuration(cmp.Or(r.TTL, "0s"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	t := f.add(&token{
		namespace: r.namespace, name: strings.TrimSuffix(unnamable.ReplaceAllString("token-"+r.DisplayName, "-"), "-"),
		path: r.path, policies: policies, meta: r.Meta, period: period,
		expires: f.now().Add(cmp.Or(period, ttl, maxTTL)), orphan: role == nil || role.Orphan,
		renewable: role == nil || role.Renewable == nil || *role.Renewable,
	})
	a := f.auth(t)
	if r.wrapTTL == "" {
		return a, nil
	}
	return f.wrap(r, a, t.accessor)
}

// sanitize lowers the names, removes doubles and adds default.
func sanitize(policies []string) []string {
	all := []string{"default"}
	for _, p := range policies {
		all = append(all, strings.ToLower(strings.TrimSpace(p)))
	}
	slices.Sort(all)
	if all = slices.Compact(all); slices.Contains(all, "root") {
		return []string{"root"}
	}
	return all
}

// policiesPermitted returns why the caller may not give the policies.
func (f *fake) policiesPermitted(caller *token, policies []string, role *body, sudo bool) *refusal {
	root := slices.Contains(caller.policies, "root")
	for _, p := range policies {
		byRole := role != nil && slices.ContainsFunc(role.AllowedPoliciesGlob, func(glob string) bool {
			matches, err := path.Match(glob, p)
			return err == nil && matches
		})
		switch {
		case p == "default":
		case role != nil && !byRole:
			return badRequest("token policies (%q) must be subset of the role's allowed policies ([\"default\"]) or "+
				"glob policies (%q)", policies, role.AllowedPoliciesGlob)
		case role == nil && !sudo && !slices.Contains(caller.policies, p):
			return badRequest("child policies must be subset of parent")
		case p == "root" && !root:
			return badRequest("root tokens may not be created without parent token being root")
		}
	}
	return nil
}

func (f *fake) renew(t *token) (answer, *refusal) {
	if !t.renewable {
		return nil, badRequest("lease is not renewable")
	}
	if t.period > 0 {
		t.expires = f.now().Add(t.period)
	}
	return f.auth(t), nil
}

func (f *fake) revoke(t *token) (answer, *refusal) {
	delete(f.tokens, t.secret)
	return nil, nil
}

func (f *fake) auth(t *token) answer {
	return answer{"auth": answer{
		"client_token": t.secret, "accessor": t.accessor, "policies": t.policies, "metadata": t.meta,
		"lease_duration": f.remaining(t), "renewable": t.renewable, "orphan": t.orphan,
	}}
}

func (f *fake) lookup(t *token) (answer, *refusal) {
	data := answer{
		"accessor": t.accessor, "policies": t.policies, "display_name": t.name, "path": t.path,
		"meta": t.meta, "orphan": t.orphan, "ttl": f.remaining(t), "renewable": t.renewable,
	}
	if t.period > 0 {
		data["period"] = int(t.period.Seconds())
	}
	return answer{"data": data}, nil
}

// remaining returns the rest of the life of a token in seconds, rounded up as Vault does.
func (f *fake) remaining(t *token) int {
	if t.expires.IsZero() {
		return 0
	}
	return int((t.expires.Sub(f.now()) + time.Second - 1) / time.Second)
}
