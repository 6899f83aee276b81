package setup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// account returns the ARN pattern of a path in an account; "" is the whole account.
func account(id int, path string) string {
	if path != "" {
		path += "/"
	}
	return fmt.Sprintf("arn:aws:iam::%012d:role/%s*", id, path)
}

func clusterOf(id int, name string) string {
	return fmt.Sprintf("arn:aws:ecs:us-east-1:%012d:cluster/%s", id, name)
}

// controller returns the state of a controller that trusts path in the account of its cluster.
func controller(t testing.TB, cluster, path string) State {
	return agent(t, Options{Cluster: cluster, RolePath: path, WholeAccount: path == "/"})
}

// principals returns what a method trusts, sorted.
func principals(f Observed, method string) []string {
	if f.Methods[method] == nil {
		return nil
	}
	return slices.Sorted(slices.Values(stringList(f.Methods[method].Config, keyPrincipals)))
}

func notices(p Plan) []string {
	var texts []string
	for _, n := range p.Notices {
		if n.Method != config.ClientAuthMethod { // both methods are alike
			texts = append(texts, strings.Join(strings.Fields(n.ARN+" "+n.Other), " ")+": "+n.Text)
		}
	}
	return texts
}

// TestNarrowedPathRemovesWiderTrust: in the old program role/* stayed
// for ever.
func TestNarrowedPathRemovesWiderTrust(t *testing.T) {
	t.Parallel()
	one, two, far := clusterOf(1, "one"), clusterOf(1, "two"), clusterOf(2, "far")
	operators := func(f *Observed, arns ...any) {
		for _, m := range []string{config.ClientAuthMethod, config.ServiceAuthMethod} {
			f.Methods[m] = &api.ACLAuthMethod{Name: m, Type: "aws-iam",
				Config: map[string]any{keyPrincipals: arns, keyDetails: true,
					keyTags: []string{config.TagServiceName, config.TagNamespace}}}
		}
	}
	record := func(f *Observed, text string) {
		for m := range f.Rules {
			f.Rules[m] = append(f.Rules[m],
				&api.ACLBindingRule{ID: "x", AuthMethod: m, Description: recordPrefix + text})
		}
	}
	start := func(f *Observed, cluster, path string) Plan {
		s := controller(t, cluster, path)
		p := s.compare(*f)
		*f = apply(t, *f, p)
		return p
	}
	for name, c := range map[string]struct {
		before  func(*Observed)
		path    string
		want    []string
		notices []string
	}{
		"our own whole account": {func(f *Observed) { start(f, one, "/") }, "a", []string{account(1, "a")}, nil},
		"our own path":          {func(f *Observed) { start(f, one, "a") }, "b", []string{account(1, "b")}, nil},
		"another account's stays": {func(f *Observed) { start(f, far, "/"); start(f, one, "/") }, "a",
			[]string{account(1, "a"), account(2, "")}, nil},
		"what another of our account wants stays": {func(f *Observed) { start(f, one, "/"); start(f, two, "/") }, "a",
			[]string{account(1, ""), account(1, "a")}, []string{account(1, "") + " " + two + ": " + noticeShared}},
		"until that one narrows, too": {func(f *Observed) {
			start(f, two, "/")
			start(f, one, "/")
			start(f, one,
				"a")
			start(f, two, "b")
		}, "a",
			[]string{account(1, "a"), account(1, "b")}, nil},
		"an operator's of the same words stays": {func(f *Observed) {
			operators(f, account(1, "old"))
			start(f, one,
				"old")
		}, "a",
			[]string{account(1, "a"), account(1, "old")}, []string{account(1, "old") + ": " + noticeFound}},
		"an operator's others stay": {func(f *Observed) {
			operators(f, "arn:aws:iam::1:user/joe",
				account(3, ""))
			start(f, one, "/")
		}, "a",
			[]string{account(1, "a"), "arn:aws:iam::1:user/joe", account(3, "")}, nil},
		"the old program's whole account is warned about": {func(f *Observed) { operators(f, account(1, "")) }, "a",
			[]string{account(1, ""), account(1, "a")}, []string{account(1, "") + ": " + noticeWhole}},
		"an operator's removal counts": {func(f *Observed) {
			operators(f, account(1, "old"))
			start(f, one, "old")
			operators(f)
			start(f, one, "old")
		}, "a",
			[]string{account(1, "a")}, nil},
		"with an unreadable record nothing goes": {func(f *Observed) { start(f, one, "/"); record(f, "?") }, "a",
			[]string{account(1, ""), account(1, "a")}, []string{"x: " + noticeUnreadable}},
		"and goes when it is deleted": {func(f *Observed) {
			start(f, one, "/")
			record(f, "?")
			start(f, one, "a")
			for m, rules := range f.Rules {
				f.Rules[m] = slices.DeleteFunc(rules, func(r *api.ACLBindingRule) bool { return r.ID == "x" })
			}
		}, "a", []string{account(1, "a")}, nil},
		"a rule without the prefix claims nothing": {func(f *Observed) {
			start(f, one, "/")
			for m := range f.Rules {
				f.Rules[m] = append(f.Rules[m],
					&api.ACLBindingRule{ID: "x",
						Description: Record{Controller: two, Trust: []Claim{{account(1, ""), true}}}.encode()})
			}
		}, "a", []string{account(1, "a")}, nil},
		"what was there when our record was deleted stays": {func(f *Observed) {
			start(f, one, "/")
			f.Rules = map[string][]*api.ACLBindingRule{config.ClientAuthMethod: nil, config.ServiceAuthMethod: nil}
			start(f, one, "/")
		}, "a", []string{account(1, ""), account(1, "a")}, []string{account(1, "") + ": " + noticeFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := nothing(controller(t, one, "a"))
			c.before(&f)
			p := start(&f, one, c.path)
			for _, method := range []string{config.ClientAuthMethod, config.ServiceAuthMethod} {
				if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), principals(f, method)); diff != "" {
					t.Errorf("%s trusts (-want +got):\n%s", method, diff)
				}
			}
			if diff := cmp.Diff(c.notices, notices(p)); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			if again := steps(controller(t, one, c.path).compare(f)); len(again) > 0 {
				t.Errorf("a second start writes %q", again)
			}
		})
	}
}

// TestPlanReportsRolesWithChangedTrust: the log has it from there.
func TestPlanReportsRolesWithChangedTrust(t *testing.T) {
	t.Parallel()
	s := controller(t, mainCluster, "a")
	f := made(t, s, func(*Observed) {})
	var got []string
	for _, w := range controller(t, mainCluster, "b").compare(f).Writes {
		if w.Object == (Object{kindMethod, config.ServiceAuthMethod}) {
			got = w.Changed
		}
	}
	want := []string{"BoundIAMPrincipalARNs +arn:aws:iam::123456789012:role/b/* -arn:aws:iam::123456789012:role/a/*"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// trustModel is the model of TestTrustModel: what Consul has, and for each ARN
// whether an operator put it where no controller's record had it.
type trustModel struct {
	t         *testing.T
	found     Observed
	operators map[string]bool
	// tried are all ARNs that a cluster ever wanted, also in starts that crashed.
	tried map[string][]string
}

// claimants returns the clusters whose records claim an ARN.
func (w *trustModel) claimants(arn string) []string {
	var who []string
	for _, r := range (State{}).claims(config.ServiceAuthMethod, w.found.Rules[config.ServiceAuthMethod]).others {
		if _, ok := r.claim(arn); ok {
			who = append(who, r.Controller)
		}
	}
	return who
}

// start runs a controller and lets it die after so many writes.
func (w *trustModel) start(cluster, path string, writes int) {
	s := controller(w.t, cluster, path)
	mine := s.Methods[0].Principals[0]
	w.tried[cluster] = append(w.tried[cluster], mine)
	p := s.compare(w.found)
	crashed := len(p.Writes) > writes
	for _, step := range p.Writes[:min(writes, len(p.Writes))] {
		had := principals(w.found, config.ServiceAuthMethod)
		w.found = apply(w.t, w.found, Plan{Writes: []Write{step}})
		for _, arn := range without(had, principals(w.found, config.ServiceAuthMethod)) {
			others := slices.DeleteFunc(w.claimants(arn), func(c string) bool { return c == cluster })
			if trusted := w.operators[arn] || arn == mine; trusted || len(others) > 0 {
				w.t.Fatalf("%s with %s removed %s: operator's %v, claimed by %q",
					cluster, path, arn, w.operators[arn], others)
			}
		}
	}
	if crashed {
		// A method that was made, and has no record yet, is like an operator's.
		isRecord := func(r *api.ACLBindingRule) bool { return strings.HasPrefix(r.Description, recordPrefix) }
		recorded := slices.ContainsFunc(w.found.Rules[config.ServiceAuthMethod], isRecord)
		if slices.Contains(principals(w.found, config.ServiceAuthMethod), mine) && !recorded {
			w.operators[mine] = true
		}
		return
	}
	has := principals(w.found, config.ServiceAuthMethod)
	if !slices.Contains(has, mine) {
		w.t.Fatalf("%s started and is not trusted: %q", cluster, has)
	}
	for _, arn := range w.tried[cluster] {
		if arn == mine || !slices.Contains(has, arn) {
			continue
		}
		claimed := w.operators[arn] || len(w.claimants(arn)) > 0
		reported := slices.ContainsFunc(p.Notices, func(n notice) bool { return n.ARN == arn })
		if !claimed && !reported {
			w.t.Fatalf("%s with %s left its %s behind", cluster, path, arn)
		}
	}
}

// operate lets an operator add or remove an ARN of the service method, which is
// the one that the model looks at.
func (w *trustModel) operate(arn string, add bool) {
	m := w.found.Methods[config.ServiceAuthMethod]
	if m == nil {
		return
	}
	have := stringList(m.Config, keyPrincipals)
	switch present := slices.Contains(have, arn); {
	case add && !present:
		have = append(have, arn)
		w.operators[arn] = len(w.claimants(arn)) == 0
	case !add && present:
		have = slices.DeleteFunc(have, func(a string) bool { return a == arn })
		w.operators[arn] = false
	}
	m.Config[keyPrincipals] = have
}

// TestTrustModel plays random starts, crashes after any write, and operators,
// and holds every removal against a simple model. A failure prints its seed.
func TestTrustModel(t *testing.T) {
	t.Parallel()
	clusters := []string{clusterOf(1, "one"), clusterOf(1, "two"), clusterOf(2, "far")}
	paths := []string{"a", "b", "/"}
	arns := []string{account(1, "a"), account(1, "b"), account(1, ""), account(2, "a"), account(2, "")}
	const seeds = 500
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		w := &trustModel{t: t, found: nothing(controller(t, clusters[0], "a")), operators: map[string]bool{},
			tried: map[string][]string{}}
		var log []string
		t.Cleanup(func() {
			if t.Failed() && len(log) > 0 {
				t.Logf("seed %d:\n%s", seed, strings.Join(log, "\n"))
			}
		})
		for range 12 {
			switch cluster, path, arn := clusters[rnd.IntN(3)], paths[rnd.IntN(3)], arns[rnd.IntN(5)]; rnd.IntN(6) {
			case 0:
				add := rnd.IntN(2) == 0
				log = append(log, fmt.Sprint("operator ", arn, " add ", add))
				w.operate(arn, add)
			case 1, 2:
				n := rnd.IntN(10)
				log = append(log, fmt.Sprint("crash of ", cluster, " with ", path, " after ", n))
				w.start(cluster, path, n)
			default:
				log = append(log, fmt.Sprint("start of ", cluster, " with ", path))
				w.start(cluster, path, 1000)
			}
		}
		log = nil
	}
	t.Logf("%d schedules", seeds)
}
