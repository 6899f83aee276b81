package consulutil

import (
	"bytes"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The tools that read ACLs answer no question with less than the server grants: names in any letter
// case, rules bound to claims, policies of other datacenters.
func TestNoAnswerIsWeakerThanTheServers(t *testing.T) {
	t.Parallel()
	t.Run("usual", func(t *testing.T) {
		t.Parallel()
		compareStrength(t, false, testkit.Share(300))
	})
	t.Run("newest", func(t *testing.T) {
		t.Parallel()
		testkit.RequireBinary(t, testkit.NewestConsul)
		compareStrength(t, true, 300)
	})
}

// grant is what an operator made, as it is on the server.
type grant struct {
	// owner and wanted are tokens; policies are what wanted has, by names in any letter case.
	owner, wanted *api.ACLToken
	policies      []aclrules.Link
	// login is by an auth method with these rules, and secret what it gave; empty for a refusal.
	login  aclrules.Login
	secret string
	// salt begins all names, and notes tell what was made.
	salt  string
	notes strings.Builder
}

func (g *grant) note(format string, args ...any) { fmt.Fprintf(&g.notes, format+"\n", args...) }

// strength compares tools and servers.
type strength struct {
	*aclServer
	dice
	authorizers map[string]*Authorizer
	counts      map[string]int
}

func compareStrength(t *testing.T, newest bool, tokenCases int) {
	address, one, two := pair(t, newest)
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("ACL_SEED"), 10, 64); err == nil {
		seed = s
	}
	s := &strength{aclServer: aclServerOf(t, one), dice: dice{mathrand.New(mathrand.NewPCG(seed, 1))},
		authorizers: map[string]*Authorizer{}, counts: map[string]int{}}
	for _, datacenter := range []string{"dc1", "dc2"} {
		authorizer, err := NewAuthorizer(Options{Address: address}, datacenter)
		s.must(err)
		s.authorizers[datacenter] = authorizer
	}
	var grants []*grant
	for i := range tokenCases {
		grants = append(grants, s.grant(fmt.Sprintf("s%dx%x", i, s.Uint32())))
	}
	s.replicated(two.ACL(), grants[len(grants)-1])
	export := s.export()
	found := export.Lint()
	for _, g := range grants {
		s.checkLogin(export, found, g)
		s.checkTokens(export, found, g)
		s.checkCovers(export, g)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, g.notes.String())
		}
	}
	t.Logf("seed %d, %d tokenCases: %v, 0 weaker answers", seed, tokenCases, s.counts)
	for _, what := range []string{"allowed", "denied", "logins",
		"refused logins", "root logins", "covered", "not covered"} {
		if s.counts[what] < tokenCases/50 {
			t.Errorf("%s: %d, the tokenCases show too little", what, s.counts[what])
		}
	}
}

// replicated waits until a datacenter has what was made last.
func (s *strength) replicated(to *api.ACL, last *grant) {
	s.t.Helper()
	testkit.Eventually(s.t, "dc2 has the last policy, role and token", func() bool {
		policy, _, err := to.PolicyReadByName(last.salt+"-p2", nil)
		if err != nil || policy == nil {
			return false
		}
		role, _, err := to.RoleReadByName(last.salt+"-r2", nil)
		if err != nil || role == nil {
			return false
		}
		_, _, err = to.TokenRead(last.wanted.AccessorID, nil)
		return err == nil
	})
}

// export returns what acl export writes, read again.
func (s *strength) export() *aclrules.Snapshot {
	s.t.Helper()
	made, err := NewACLReader(s.read, "").Export(s.t.Context())
	s.must(err)
	var file bytes.Buffer
	s.must(made.Write(&file))
	read, err := aclrules.ReadSnapshot(&file)
	s.must(err)
	return read
}

// fold changes the letter case of a name at random.
func (s *strength) fold(name string) string {
	return strings.Map(func(r rune) rune {
		if s.IntN(2) == 0 {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, name)
}

// lines returns rules of a policy, each about something else: Consul 1.22 refuses an argument that is set
// again.
func (s *strength) lines() []string {
	kinds := [][]string{
		{`acl = "write"`, `acl = "deny"`}, {`operator = "write"`}, {`mesh = "write"`}, {`keyring = "read"`},
		{`node_prefix "" { policy = "write" }`},
		{`service_prefix "" { policy = "write" }`, `service "web" { policy = "write" intentions = "write" }`,
			`service "web" { policy = "deny" }`},
		{`key_prefix "" { policy = "write" }`, `key_prefix "consul-ecs/" { policy = "deny" }`,
			`key "consul-ecs/x" { policy = "write" }`},
	}
	var lines []string
	for _, i := range s.Perm(len(kinds))[:1+s.IntN(3)] {
		lines = append(lines, pick(s.dice, kinds[i]...))
	}
	return lines
}

// policy makes a policy. A server may remember what it made of its rules together with others, so each
// belongs to one subject, and has a text of its own.
func (s *strength) policy(g *grant, p api.ACLPolicy, lines []string) *api.ACLLink {
	s.t.Helper()
	p.Rules = "# " + p.Name + "\n" + strings.Join(lines, "\n")
	g.note("policy %s in %q: %q", p.Name, p.Datacenters, lines)
	_, _, err := s.acl.PolicyCreate(&p, nil)
	s.must(err)
	return &api.ACLLink{Name: s.fold(p.Name)}
}

// grant makes policies, roles, tokens and a login.
func (s *strength) grant(salt string) *grant {
	s.t.Helper()
	g := &grant{salt: salt}
	owner, wanted := &api.ACLToken{}, &api.ACLToken{}
	for i := range 3 {
		lines, limits := s.lines(), s.limits()
		owner.Policies = append(owner.Policies,
			s.policy(g, api.ACLPolicy{Name: s.fold(fmt.Sprintf("%s/o%d", salt, i)), Datacenters: limits}, lines))
		if i == 2 {
			continue
		}
		if s.IntN(2) == 0 {
			lines, limits = s.lines(), s.limits()
		}
		link := s.policy(g, api.ACLPolicy{Name: s.fold(fmt.Sprintf("%s/w%d", salt, i)), Datacenters: limits}, lines)
		wanted.Policies = append(wanted.Policies, link)
		g.policies = append(g.policies, aclrules.Link{Name: s.fold(link.Name)})
	}
	s.role(g, "ro", owner.Policies[2])
	owner.Policies, owner.Roles = owner.Policies[:2], []*api.ACLLink{{Name: s.fold(salt + "-ro")}}
	owner.ServiceIdentities = []*api.ACLServiceIdentity{{ServiceName: "web", Datacenters: s.limits()}}
	g.note("owner: service identity web in %q", owner.ServiceIdentities[0].Datacenters)
	var err error
	g.owner, _, err = s.acl.TokenCreate(owner, nil)
	s.must(err)
	g.wanted, _, err = s.acl.TokenCreate(wanted, nil)
	s.must(err)
	s.bind(g)
	return g
}

// role makes a role with a policy.
func (s *strength) role(g *grant, name string, policy *api.ACLLink) {
	s.t.Helper()
	role := &api.ACLRole{Name: s.fold(g.salt + "-" + name), Policies: []*api.ACLLink{policy}}
	g.note("role %s: %s", role.Name, policy.Name)
	_, _, err := s.acl.RoleCreate(role, nil)
	s.must(err)
}

func (s *strength) limits() []string {
	return pick(s.dice, nil, nil, nil, []string{"dc1"}, []string{"dc2"}, []string{"dc1", "dc2"})
}

// bind makes an auth method with binding rules, and logs in.
func (s *strength) bind(g *grant) {
	s.t.Helper()
	for i := range 3 {
		link := s.policy(g, api.ACLPolicy{Name: s.fold(fmt.Sprintf("%s-p%d", g.salt, i)), Datacenters: s.limits()},
			s.lines())
		s.role(g, fmt.Sprintf("r%d", i), link)
	}
	method := s.fold(g.salt + "-method")
	_, _, err := s.acl.AuthMethodCreate(&api.ACLAuthMethod{Name: method, Type: "jwt", Config: map[string]any{
		s.fold("JWTValidationPubKeys"): s.public, s.fold("BoundAudiences"): "test",
		s.fold("ClaimMappings"): map[string]string{"team": "team", "env": "env"},
	}}, nil)
	s.must(err)
	some := func(kind string) string { return fmt.Sprint(g.salt, "-", kind, s.IntN(4)) } // the last is missing
	claims := map[string]string{"team": s.fold(some(pick(s.dice, "p", "r", "/"))), "env": strconv.Itoa(s.IntN(4))}
	for range 1 + s.IntN(2) {
		b := &api.ACLBindingRule{AuthMethod: s.fold(method)}
		kind := ""
		b.BindType, kind = api.BindingRuleBindTypePolicy, "p"
		if s.IntN(3) == 0 {
			b.BindType, kind = api.BindingRuleBindTypeRole, "r"
		}
		b.BindName = pick(s.dice, s.fold(some(kind)), "${value.team}", s.fold(g.salt+"-"+kind)+"${value.env}",
			s.fold(g.salt)+`-${value.env == "0" ? "p" : "`+kind+`"}${value.env}`)
		b.Selector = pick(s.dice, "", "", fmt.Sprintf("value.team == %q", claims["team"]),
			fmt.Sprintf("value.team != %q", strings.ToLower(claims["team"])), `value.env == "0"`,
			`value.team == "none" or value.env != "1"`)
		g.note("binding rule %s %s if %s", b.BindType, b.BindName, b.Selector)
		_, _, err := s.acl.BindingRuleCreate(b, nil)
		s.must(err)
	}
	g.login = aclrules.Login{Method: s.fold(method),
		Entity: aclrules.Entity{Claims: map[string][]string{"team": {claims["team"]}, "env": {claims["env"]}}}}
	token, _, err := s.acl.Login(&api.ACLLoginParams{AuthMethod: s.fold(method), BearerToken: s.sign(claims, nil)}, nil)
	g.note("claims %v: %v", claims, err)
	switch {
	case err == nil:
		g.secret = token.SecretID
	case Status(err) != 403 && !strings.Contains(Reason(err), "bind name"):
		s.must(err)
	}
}

// questions returns what tells the policies apart.
func (s *strength) questions() []aclrules.Query {
	all := []aclrules.Query{
		{Resource: aclrules.ACL, Access: aclrules.WriteAccess},
		{Resource: aclrules.Operator, Access: aclrules.WriteAccess},
		{Resource: aclrules.Mesh, Access: aclrules.WriteAccess},
		{Resource: aclrules.Keyring, Access: aclrules.ReadAccess},
		{Resource: aclrules.Peering, Access: aclrules.WriteAccess},
	}
	for _, segment := range []string{"consul-ecs/x", "consul-ecs/y", "web", "web-sidecar-proxy", "other"} {
		for _, r := range []aclrules.Resource{aclrules.Key, aclrules.Service, aclrules.Intention, aclrules.Node} {
			all = append(all, aclrules.Query{Resource: r, Segment: segment, Access: aclrules.WriteAccess},
				aclrules.Query{Resource: r, Segment: segment, Access: aclrules.ReadAccess})
		}
	}
	return all
}

// compareWith compares answers of acl can about a subject with those of a server about a token.
func (s *strength) compareWith(
	export *aclrules.Snapshot, datacenter, secret string, subject aclrules.Subject,
) (allowed []bool) {
	s.t.Helper()
	questions := s.questions()
	allowed, err := s.authorizers[datacenter].Authorize(s.t.Context(), secret, questions)
	s.must(err)
	report := s.report(export, datacenter, subject)
	for i, q := range questions {
		got := report.Can(q)
		if want := map[bool]string{true: "allow", false: "deny"}[allowed[i]]; got.Decision != want {
			s.t.Errorf("%+v in %s: %s: we %s (%s, %s), the server %s",
				subject, datacenter, q, got.Decision, got.Rule, got.Why, want)
		}
		s.counts[map[bool]string{true: "allowed", false: "denied"}[allowed[i]]]++
	}
	return allowed
}

func (s *strength) report(export *aclrules.Snapshot, datacenter string, subject aclrules.Subject) *aclrules.Report {
	r := aclrules.Resolver{Objects: export, Datacenter: datacenter, Now: time.Now()}
	return aclrules.NewReport(r.Resolve(context.Background(), subject), aclrules.Denied)
}

// checkLogin: what a login gets is what acl can -login answers, and when that is write on acl or
// operator, acl lint has named one of the method's rules.
func (s *strength) checkLogin(export *aclrules.Snapshot, found []aclrules.Finding, g *grant) {
	s.t.Helper()
	refused, _ := s.report(export, "dc1", aclrules.Subject{Login: &g.login}).Special()
	if (refused != nil) != (g.secret == "") {
		s.t.Errorf("login: we refuse it: %v, the server: %v", refused, g.secret == "")
	}
	if g.secret == "" {
		s.counts["refused logins"]++
		return
	}
	s.counts["logins"]++
	allowed := s.compareWith(export, "dc1", g.secret, aclrules.Subject{Login: &g.login})
	if !allowed[0] && !allowed[1] {
		return
	}
	s.counts["root logins"]++
	named := slices.ContainsFunc(found, func(f aclrules.Finding) bool {
		_, method, is := strings.Cut(f.Object, " of ")
		return is && f.Code == "root" && aclrules.SameName(method, g.login.Method)
	})
	if !named {
		s.t.Errorf("a login writes acl or operator, and no binding rule of %s is root to lint", g.login.Method)
	}
}

// checkTokens: in both datacenters acl can -accessor answers as the server, and a token that writes keys
// of the controller has a policy that acl lint has named.
func (s *strength) checkTokens(export *aclrules.Snapshot, found []aclrules.Finding, g *grant) {
	s.t.Helper()
	for _, datacenter := range []string{"dc1", "dc2"} {
		for _, token := range []*api.ACLToken{g.owner, g.wanted} {
			allowed := s.compareWith(export, datacenter, token.SecretID,
				aclrules.Subject{Token: s.fold(token.AccessorID)})
			named := func(code string) bool {
				return slices.ContainsFunc(found, func(f aclrules.Finding) bool {
					return f.Code == code && strings.HasPrefix(strings.ToLower(f.Object), "policy "+g.salt+"/")
				})
			}
			key := slices.Index(s.questions(),
				aclrules.Query{Resource: aclrules.Key, Segment: "consul-ecs/x", Access: aclrules.WriteAccess})
			if allowed[key] && !named(aclrules.KV) {
				s.t.Errorf("token %s writes consul-ecs/x in %s, and no policy is named by lint",
					token.AccessorID, datacenter)
			}
			if (allowed[0] || allowed[1]) && !named("root") {
				s.t.Errorf("token %s is root in %s, and no policy is named by lint", token.AccessorID, datacenter)
			}
		}
	}
}

// checkCovers: what admit lets an owner hand out allows nothing, in any datacenter, that the owner may not.
func (s *strength) checkCovers(export *aclrules.Snapshot, g *grant) {
	s.t.Helper()
	owner := s.report(export, "dc1", aclrules.Subject{Token: g.owner.AccessorID})
	excess := aclrules.Covers(owner, s.report(export, "dc1", aclrules.Subject{PolicyLinks: g.policies}))
	if len(excess) > 0 {
		s.counts["not covered"]++
		return
	}
	s.counts["covered"]++
	questions := s.questions()
	for datacenter, authorizer := range s.authorizers {
		has, err := authorizer.Authorize(s.t.Context(), g.owner.SecretID, questions)
		s.must(err)
		gets, err := authorizer.Authorize(s.t.Context(), g.wanted.SecretID, questions)
		s.must(err)
		for i, q := range questions {
			if gets[i] && !has[i] && !has[0] { // with acl:write it could make any token
				s.t.Errorf("covered, but in %s the owner may not %s", datacenter, q)
			}
		}
	}
}
