package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

const ours = "arn:aws:iam::123456789012:role/consul-ecs/*"

func agent(t testing.TB, o Options) State {
	t.Helper()
	if o.Cluster == "" {
		o.Cluster = mainCluster
	}
	if o.RolePath == "" {
		o.RolePath = DefaultRolePath
	}
	s, err := Agent(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nothing returns a Consul that was read and has nothing of a state.
func nothing(s State) Observed {
	f := Observed{
		Policies: map[string]*api.ACLPolicy{}, Roles: map[string]*api.ACLRole{},
		Methods: map[string]*api.ACLAuthMethod{}, Rules: map[string][]*api.ACLBindingRule{},
		Anonymous: &api.ACLToken{AccessorID: anonymousToken, SecretID: "anonymous"},
	}
	for _, p := range s.Policies {
		f.Policies[p.Name] = nil
	}
	for _, r := range s.Roles {
		f.Roles[r.Name] = nil
	}
	for _, m := range s.Methods {
		f.Methods[m.Name], f.Rules[m.Name] = nil, nil
	}
	if s.Anonymous != nil {
		f.Policies[s.Anonymous.Name] = nil
	}
	return f
}

// apply returns what a Consul has after a plan. It makes all writes.
func apply(t testing.TB, f Observed, p Plan) Observed {
	t.Helper()
	for _, w := range p.Writes {
		switch v := w.Value.(type) {
		case *api.ACLPolicy:
			f.Policies[v.Name] = v
		case *api.ACLRole:
			f.Roles[v.Name] = v
		case *api.ACLAuthMethod:
			f.Methods[v.Name] = v
		case *api.ACLBindingRule:
			if w.Create {
				v.ID = v.Description
				f.Rules[v.AuthMethod] = append(f.Rules[v.AuthMethod], v)
			}
			for i, r := range f.Rules[v.AuthMethod] {
				if r.ID == v.ID {
					f.Rules[v.AuthMethod][i] = v
				}
			}
		case *api.ACLToken:
			f.Anonymous = v
		case *api.Partition:
			f.NoPartition = false
		default:
			t.Fatalf("a write of %T", v)
		}
	}
	return f
}

// steps returns a plan's writes in one line each.
func steps(p Plan) []string {
	var lines []string
	for _, w := range p.Writes {
		line := w.Object.String()
		if w.Create {
			line += " new"
		} else {
			for _, c := range w.Changed {
				line += " " + c
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestCompareFromNothingAndAgain(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{AnonymousRead: true})
	f := nothing(s)
	p := s.compare(f)
	want := []string{
		"policy consul-ecs-client-policy new",
		"role consul-ecs-client-role new",
		"auth method iam-ecs-client-token new",
		"auth method iam-ecs-service-token new",
		"binding rule iam-ecs-client-token: Bind a policy for Consul clients on ECS new",
		"binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS new",
		"record " + mainCluster + " in iam-ecs-client-token new",
		"record " + mainCluster + " in iam-ecs-service-token new",
		"policy anonymous-token-policy new",
		"token 00000000-0000-0000-0000-000000000002 Policies",
	}
	if diff := cmp.Diff(want, steps(p)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if again := s.compare(apply(t, f, p)); len(again.Writes)+len(again.Notices)+len(again.Refused) > 0 {
		t.Errorf("a second plan: %+v", again)
	}
}

// made returns a Consul that has everything, changed by the test.
func made(t testing.TB, s State, change func(*Observed)) Observed {
	t.Helper()
	f := apply(t, nothing(s), s.compare(nothing(s)))
	change(&f)
	return f
}

// TestCompare changes one thing, plans, and looks at the plan; a second plan
// after it has nothing to do.
func TestCompare(t *testing.T) {
	t.Parallel()
	record := "record " + mainCluster + " in iam-ecs-service-token"
	// the last one is the record
	rules := func(f *Observed) []*api.ACLBindingRule { return f.Rules[config.ServiceAuthMethod][:1] }
	for name, c := range map[string]struct {
		change func(*Observed)
		want   []string
	}{
		"policy deleted": {func(f *Observed) { f.Policies[clientPolicy] = nil },
			[]string{"policy consul-ecs-client-policy new"}},
		"policy weakened": {func(f *Observed) { f.Policies[clientPolicy].Rules = `node_prefix "" { policy = "write" }` },
			[]string{"policy consul-ecs-client-policy Rules"}},
		"policy in other words": {func(f *Observed) {
			f.Policies[clientPolicy].Rules = "service_prefix \"\" { policy = \"read\" } # all\nnode_prefix \"\" { " +
				"policy = \"write\" }"
		}, nil},
		"policy in JSON": {func(f *Observed) {
			f.Policies[clientPolicy].Rules = `{"node_prefix":{"":{"policy":"write"}},` +
				`"service_prefix":{"":{"policy":"read"}}}`
		}, nil},
		"policy with what the server ignores": {func(f *Observed) { f.Policies[clientPolicy].Rules += "\nnamespace \"a\" { acl = \"write\" }" },
			[]string{"policy consul-ecs-client-policy Rules"}},
		"policy that is none": {func(f *Observed) { f.Policies[clientPolicy].Rules = "{" },
			[]string{"policy consul-ecs-client-policy Rules"}},
		"policy described by an operator": {func(f *Observed) {
			f.Policies[clientPolicy].Description, f.Policies[clientPolicy].Datacenters = "mine", []string{"dc1"}
		}, nil},
		"shared policy changed": {func(f *Observed) { f.Policies[anonymousPolicy].Rules = `node_prefix "" { policy = "read" }` }, nil},
		"shared policy deleted": {func(f *Observed) { f.Policies[anonymousPolicy] = nil },
			[]string{"policy anonymous-token-policy new"}},
		"token detached": {func(f *Observed) { f.Anonymous.Policies = []*api.ACLLink{{Name: "other"}} },
			[]string{"token 00000000-0000-0000-0000-000000000002 Policies"}},
		"role deleted": {func(f *Observed) { f.Roles[clientRole] = nil },
			[]string{"role consul-ecs-client-role new"}},
		"role unlinked": {func(f *Observed) { f.Roles[clientRole].Policies = nil },
			[]string{"role consul-ecs-client-role Policies"}},
		"role linked in upper case":  {func(f *Observed) { upper(&f.Roles[clientRole].Policies[0].Name) }, nil},
		"token linked in upper case": {func(f *Observed) { upper(&f.Anonymous.Policies[0].Name) }, nil},
		"role bound in upper case":   {func(f *Observed) { upper(&f.Rules[config.ClientAuthMethod][0].BindName) }, nil},
		"role linked to others": {func(f *Observed) { f.Roles[clientRole].Policies = []*api.ACLLink{{Name: "x"}} },
			[]string{"role consul-ecs-client-role Policies"}},
		"role with more": {func(f *Observed) {
			r := f.Roles[clientRole]
			r.Policies = append([]*api.ACLLink{{Name: "x"}}, r.Policies...)
			r.Description, r.ServiceIdentities = "mine", []*api.ACLServiceIdentity{{ServiceName: "web"}}
		}, nil},
		"method deleted": {func(f *Observed) {
			f.Methods[config.ClientAuthMethod],
				f.Rules[config.ClientAuthMethod] = nil, nil
		},
			[]string{"auth method iam-ecs-client-token new",
				"binding rule iam-ecs-client-token: Bind a policy for Consul clients on ECS new",
				"record " + mainCluster + " in iam-ecs-client-token new"}},
		"record deleted": {func(f *Observed) { f.Rules[config.ServiceAuthMethod] = rules(f) },
			[]string{record + " new"}},
		"record that binds": {func(f *Observed) { f.Rules[config.ServiceAuthMethod][1].Selector = "" },
			[]string{record + " Description"}},
		"rule deleted": {func(f *Observed) { f.Rules[config.ServiceAuthMethod] = f.Rules[config.ServiceAuthMethod][1:] },
			[]string{"binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS new"}},
		"rule for another name": {func(f *Observed) { rules(f)[0].BindName = "web" },
			[]string{"binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS BindName"}},
		"rule of another type": {func(f *Observed) { rules(f)[0].BindType = api.BindingRuleBindTypeNode },
			[]string{"binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS BindType"}},
		"rule narrowed": {func(f *Observed) { rules(f)[0].Selector = `entity_tags["env"] == "prod"` },
			nil},
		"rule described by an operator": {func(f *Observed) { rules(f)[0].Description = "mine" }, nil},
		"more rules": {func(f *Observed) {
			f.Rules[config.ServiceAuthMethod] = append(
				[]*api.ACLBindingRule{{BindType: "role", BindName: "x", Description: rules(f)[0].Description}},
				f.Rules[config.ServiceAuthMethod]...)
		}, nil},
		"nothing could be read": {func(f *Observed) { *f = Observed{} }, nil},
		"rules could not be read": {func(f *Observed) {
			f.Methods[config.ClientAuthMethod] = nil
			delete(f.Rules, config.ClientAuthMethod)
		}, nil},
		"one method could not be read": {func(f *Observed) {
			delete(f.Methods,
				config.ClientAuthMethod)
			f.Rules[config.ClientAuthMethod] = nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := agent(t, Options{AnonymousRead: true})
			f := made(t, s, c.change)
			p := s.compare(f)
			if diff := cmp.Diff(c.want, steps(p)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if again := steps(s.compare(apply(t, f, p))); len(again) > 0 {
				t.Errorf("a second plan: %q", again)
			}
		})
	}
}

func upper(name *string) { *name = strings.ToUpper(*name) }

// TestCompareCorrectsItsOwnSelector: a wanted selector is corrected.
func TestCompareCorrectsItsOwnSelector(t *testing.T) {
	t.Parallel()
	want := BindingRule{Method: "m", Description: "d", Selector: `a == "b"`, BindType: "role", BindName: "r"}
	s := State{Rules: []BindingRule{want}}
	f := Observed{Methods: map[string]*api.ACLAuthMethod{"m": {}}, Rules: map[string][]*api.ACLBindingRule{
		"m": {{ID: "1", AuthMethod: "m", Description: "d", BindType: "role", BindName: "r"}}}}
	p := s.compare(f)
	if diff := cmp.Diff([]string{"binding rule m: d Selector"}, steps(p)); diff != "" {
		t.Fatal(diff)
	}
	if got := p.Writes[0].Value.(*api.ACLBindingRule).Selector; got != `a == "b"` {
		t.Errorf("selector %q", got)
	}
}

// TestCompareKeepsTheOrder: what needs another object names it and comes later.
func TestCompareKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s := agent(t, Options{Partition: "ecs"})
	f := nothing(s)
	f.NoPartition = true
	done := map[Object]bool{}
	for _, w := range s.compare(f).Writes {
		for _, n := range w.Needs {
			if !done[n] {
				t.Errorf("%s needs %s, which comes later or not at all", w.Object, n)
			}
		}
		done[w.Object] = true
	}
	if len(done) != 9 {
		t.Errorf("%d objects, want 9", len(done))
	}
}
