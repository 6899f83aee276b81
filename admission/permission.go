package admission

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Engines of a check.
const (
	EngineServer   = "server"
	EngineResolver = "resolver"
	EngineBoth     = "both"
)

// PermissionChecker finds out whether a token allows what a definition requires.
type PermissionChecker struct {
	// Engine is one of the engines: the server decides, the resolver reads the token's
	// rules and explains, or both.
	Engine string
	// Anonymous is true for the rights of requests without a token.
	Anonymous bool
	// Authorize asks the server what the token allows in a namespace and partition, empty for
	// the default ones.
	Authorize func(ctx context.Context, namespace, partition string, queries []aclrules.Query) ([]bool, error)
	// Resolve reads the rules of the token, or of policies by their names.
	Resolve func(ctx context.Context, policies []string) (*aclrules.Report, error)
}

// Permissions are what a check found out.
type Permissions struct {
	// Check is the engine.
	Check string `json:"check"`
	// Decision is allow, deny or unknown, on all answers together.
	Decision string   `json:"decision"`
	Answers  []Answer `json:"answers"`
	// Policy grants all that is missing, unless rules have to be removed.
	Policy string `json:"policy,omitempty"`
}

// Answer reports whether the operator's token allows one requirement.
type Answer struct {
	Requirement
	// Decision is allow, deny, unknown, or disagree when the engines differ.
	Decision string `json:"decision"`
	// Why is the rule that decided, or what else did.
	Why string `json:"why,omitempty"`
	// Policy is the smallest text that would grant what is missing. Remove are rules in
	// whose presence none does.
	Policy string   `json:"policy,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Codes of findings about permissions.
const (
	codeAnonymous    = "ACL-ANONYMOUS"
	codeDenied       = "ACL-DENIED"
	codeDisabled     = "ACL-DISABLED"
	codeDisagree     = "ACL-DISAGREE"
	codeEscalate     = "ACL-ESCALATE"
	codeUnknownToken = "ACL-TOKEN"
	codeUnchecked    = "ACL-UNCHECKED"
	codeUndetermined = "ACL-UNKNOWN"
	codeUnnamed      = "ACL-UNNAMED"
	codeNamespace    = "ADM-NAMESPACE"
)

// permissionCodes returns the rules about rights, sorted by code.
func permissionCodes() []Code {
	return []Code{
		{codeAnonymous, Info, "these are the rights of requests without a token", ""},
		{codeDenied, taskdef.Error, "the token does not allow {query}, needed to {reason}: {why}", "{fix}"},
		{codeDisabled, taskdef.Warn, "the server has no ACLs: every request is allowed there",
			"-check none, if that is meant"},
		{codeDisagree, taskdef.Error, "the server allows {query}, but the token's rules do not: {why}",
			"run consul-ecs acl explain, and review the token's policies"},
		{codeEscalate, taskdef.Error, "the annotation policies hands out more than the token allows: {excess}",
			"leave the policy out, or use a token that has these rights; -resolver-token-file takes a token with " +
				"acl:read that reads both"},
		{codeUnknownToken, taskdef.Error, "the operator's token is refused: {why}", "use another token"},
		{codeUnchecked, taskdef.Warn, "there is no token, and no right was checked", "give a token, or -check none"},
		{codeUndetermined, taskdef.Error, "cannot determine whether the token allows {query}: {why}", "{fix}"},
		{codeUnnamed, taskdef.Warn, "the name of the service is known at deployment only: no right to register it " +
			"was checked", "set the annotation service-name"},
		{codeNamespace, taskdef.Error, "the namespace or partition {namespace} needs Consul Enterprise, but the " +
			"server is the community edition", "remove it"},
	}
}

// Unchecked adds to the findings that there was no token to check.
func (r *Result) Unchecked() { r.add(codeUnchecked, "$") }

// Undetermined reports whether nothing forbids the definition but questions about rights
// that have no sure answer.
func (r *Result) Undetermined(strict bool) bool {
	rest := slices.DeleteFunc(slices.Clone(r.Findings),
		func(f Finding) bool { return f.Code == codeUndetermined || f.Code == codeDisagree })
	return r.Rejected(strict) && !(&Result{Findings: rest}).Rejected(strict)
}

// Check finds out whether the token allows what an admitted definition requires, and adds
// findings to it. What could not be found out is a finding, too: it is never allowed.
func (c PermissionChecker) Check(ctx context.Context, r *Result) *Permissions {
	if c.Anonymous {
		r.add(codeAnonymous, "$")
	}
	if r.Unnamed {
		r.add(codeUnnamed, "$")
	}
	k := permissionCheck{c, r, &Permissions{Check: c.Engine, Decision: aclrules.Allowed.String(), Answers: []Answer{}}}
	done := false
	parts := byTenancy(r.Requirements)
	for _, at := range slices.SortedFunc(maps.Keys(parts), tenancy.compare) { // the default namespace first
		if done = k.tenancy(ctx, at, parts[at]); done {
			break // what is left has the same answer
		}
	}
	if !done && len(r.Policies.Names) > 0 {
		k.escalation(ctx)
	}
	k.conclude()
	return k.found
}

// permissionCheck is a check of one definition.
type permissionCheck struct {
	checker PermissionChecker
	result  *Result
	found   *Permissions
}

func (k permissionCheck) add(code, path string, pairs ...any) { k.result.add(code, path, pairs...) }

// tenancy is where rights are looked for.
type tenancy struct{ namespace, partition string }

func (t tenancy) String() string {
	if t.partition == "" {
		return t.namespace
	}
	return t.partition + "/" + cmp.Or(t.namespace, "default")
}

func (t tenancy) compare(other tenancy) int { return strings.Compare(t.String(), other.String()) }

// byTenancy returns the operator's requirements by their namespace and partition.
func byTenancy(all []Requirement) map[tenancy][]Requirement {
	parts := map[tenancy][]Requirement{}
	for _, q := range all {
		if at := (tenancy{q.Namespace, q.Partition}); q.Holder == holderOperator {
			parts[at] = append(parts[at], q)
		}
	}
	return parts
}

// tenancy asks about one namespace. It reports whether what it found out is the
// answer to everything.
func (k permissionCheck) tenancy(ctx context.Context, at tenancy, required []Requirement) (done bool) {
	answers, err := k.checker.ask(ctx, at, required)
	switch {
	case errors.Is(err, aclrules.ErrDisabled):
		k.add(codeDisabled, "$")
		return true
	case errors.Is(err, aclrules.ErrRefused):
		k.add(codeUnknownToken, "$", "why", err)
		return true
	case errors.Is(err, consulutil.ErrNoNamespaces):
		k.add(codeNamespace, required[0].Path, "namespace", at)
		return false
	case err != nil:
		k.add(codeUndetermined, "$", "query", "what the task needs", "why", err, "fix", remedy(err))
		return true
	}
	for i, a := range answers {
		k.answer(required[i], a)
	}
	return false
}

// remedy returns what can be done where nothing could be asked.
func remedy(err error) string {
	switch {
	case errors.Is(err, consulutil.ErrUnknownReader):
		return "name another token with acl:read by -resolver-token-file"
	case errors.Is(err, aclrules.ErrEnterprise):
		return "use -check server or -check both"
	}
	return "try again when the server answers, or admit without a check by -check none"
}

// answer adds one answer and its finding.
func (k permissionCheck) answer(q Requirement, a answered) {
	query := q.Query().String()
	if at := (tenancy{q.Namespace, q.Partition}); at != (tenancy{}) {
		query += " in the namespace " + at.String()
	}
	full := Answer{Requirement: q, Decision: a.answer.Decision, Why: a.why()}
	switch {
	case a.answer.Decision == aclrules.Allowed.String():
	case a.answer.Decision == aclrules.Unknown.String():
		full.Policy = q.HCL()
		k.add(codeUndetermined, q.Path, "query", query, "why", a.why(), "fix",
			"-resolver-token-file takes a token with acl:read, and -check both asks the server")
	case a.answer.Decision == aclrules.Disagree && a.answer.Server == aclrules.Allowed.String():
		k.add(codeDisagree, q.Path, "query", query, "why", a.why())
	default:
		var sure bool
		full.Policy, full.Remove, sure = a.policy(q)
		fix := full.fix()
		if !sure {
			fix += "; a deny that was not read outranks it"
		}
		k.add(codeDenied, q.Path, "query", query, "reason", q.Reason, "why", a.why(), "fix", fix)
	}
	k.found.Answers = append(k.found.Answers, full)
}

func (a Answer) fix() string {
	var parts []string
	if len(a.Remove) > 0 {
		parts = append(parts, "remove "+strings.Join(a.Remove, " and "))
	}
	if a.Policy != "" {
		parts = append(parts, "add "+strings.ReplaceAll(a.Policy, "\n", "; "))
	}
	return strings.Join(parts, ", and ")
}

// escalation compares the policies that the task asks the broker for with the
// operator's own rights.
func (k permissionCheck) escalation(ctx context.Context) {
	owner, err := k.checker.Resolve(ctx, nil)
	var wanted *aclrules.Report
	if err == nil {
		wanted, err = k.checker.Resolve(ctx, k.result.Policies.Names)
	}
	if err != nil {
		k.add(codeUndetermined, k.result.Policies.Path, "query", "the policies that it hands out", "why", err, "fix",
			remedy(err))
		return
	}
	if _, disabled := owner.Special(); disabled != nil {
		k.add(codeDisabled, "$")
		return
	}
	for _, e := range aclrules.Covers(owner, wanted) {
		k.add(codeEscalate, k.result.Policies.Path, "excess", e)
	}
}

// conclude decides on all findings together.
func (k permissionCheck) conclude() {
	texts := []string{}
	for _, a := range k.found.Answers {
		if a.Policy != "" && !slices.Contains(texts, a.Policy) {
			texts = append(texts, a.Policy)
		}
	}
	k.found.Policy = strings.Join(texts, "\n")
	for _, f := range k.result.Findings {
		switch f.Code {
		case codeDenied, codeEscalate, codeUnknownToken, codeNamespace:
			k.found.Decision = aclrules.Denied.String()
			return
		case codeUndetermined, codeDisagree:
			k.found.Decision = aclrules.Unknown.String()
		}
	}
}
