package admission

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Engines of a check.
const (
	CheckServer   = "server"
	CheckResolver = "resolver"
	CheckBoth     = "both"
	CheckNone     = "none"
)

// Server is what a Consul server says of a token's rights.
type Server interface {
	Authorize(ctx context.Context, token string, queries []aclrules.Query) ([]bool, error)
}

// Checker finds out whether a token allows what a definition requires.
type Checker struct {
	// Engine is one of the engines: the server decides, the resolver reads the token's
	// rules and explains, or both.
	Engine string
	// Token is the operator's; empty for the rights of requests without a token.
	Token secret.Value
	// Server opens the server for a namespace and partition, empty for the default ones.
	Server func(namespace, partition string) (Server, error)
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

// Answer is whether the operator's token allows one requirement.
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
	codeUnknown      = "ACL-UNKNOWN"
	codeUnnamed      = "ACL-UNNAMED"
	codeLeak         = "ADM-LEAK"
	codeNamespace    = "ADM-NAMESPACE"
	codeToken        = "ADM-TOKEN"
)

// PermissionCodes returns the rules about rights and about the operator's token, sorted
// by code. Those of Codes need no Consul.
func PermissionCodes() []Code {
	return []Code{
		{codeAnonymous, Info, "these are the rights of requests without a token", ""},
		{codeDenied, taskdef.Error, "the token does not allow {query}, needed to {reason}: {why}", "{fix}"},
		{codeDisabled, taskdef.Warn, "the server has no ACLs: every request is allowed there", "-check none, if that is meant"},
		{codeDisagree, taskdef.Error, "the server allows {query}, but the token's rules do not: {why}", "run consul-ecs acl explain, and have the token's policies looked at"},
		{codeEscalate, taskdef.Error, "the annotation policies hands out more than the token allows: {excess}", "leave the policy out, or use a token that has these rights; -resolver-token-file takes a token with acl:read that reads both"},
		{codeUnknownToken, taskdef.Error, "the operator's token is refused: {why}", "use another token"},
		{codeUnchecked, taskdef.Warn, "there is no token, and no right was checked", "give a token, or -check none"},
		{codeUnknown, taskdef.Error, "whether the token allows {query} is unknown: {why}", "{fix}"},
		{codeUnnamed, Info, "the name of the service is known at deployment only: no right to register it was checked", "set the annotation service-name"},
		{codeLeak, taskdef.Error, "the operator's token is here ({form})", "remove it: everyone with ecs:DescribeTaskDefinition reads it"},
		{codeNamespace, taskdef.Error, "the namespace or partition {namespace} needs Consul Enterprise, which the server is not", "remove it"},
		{codeToken, taskdef.Warn, "removed {what}, whose value is the operator's token", "remove it from the input"},
	}
}

func (t *task) permission(code, path string, pairs ...any) {
	t.findings = append(t.findings, finding(PermissionCodes(), code, path, pairs...))
}

// require adds what the task uses of Consul and what that takes. The token broker hands
// out rights to tasks without the mesh, too.
func (r *Result) require(t *task) {
	if r.Injected {
		uses := t.uses()
		r.Usages, r.Requirements = usages(uses), requirements(uses)
		r.unnamed = t.cfg != nil && t.kind() == ""
	}
	r.policies = t.policies()
}

// Used reports whether there is anything to check.
func (r *Result) Used() bool { return r.unnamed || len(r.Requirements) > 0 || len(r.policies.names) > 0 }

// Unchecked adds to the findings that there was no token to check.
func (r *Result) Unchecked() { r.find(codeUnchecked, "$") }

// Undetermined reports whether nothing forbids the definition but questions about rights
// that have no sure answer.
func (r *Result) Undetermined(strict bool) bool {
	rest := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Code == codeUnknown || f.Code == codeDisagree })
	return r.Rejected(strict) && !(&Result{Findings: rest}).Rejected(strict)
}

func (r *Result) find(code, path string, pairs ...any) {
	r.Findings = sorted(append(r.Findings, finding(PermissionCodes(), code, path, pairs...)))
}

// Check finds out whether the token allows what the definition requires, and adds
// Permissions and findings to the result. It asks nothing for a definition that uses
// nothing of Consul. What could not be found out is a finding, too: it is never allowed.
func (r *Result) Check(ctx context.Context, c Checker) {
	if !r.Used() || c.Engine == CheckNone {
		return
	}
	if c.Token.Empty() {
		r.find(codeAnonymous, "$")
	}
	if r.unnamed {
		r.find(codeUnnamed, "$")
	}
	r.Permissions = &Permissions{Check: c.Engine, Decision: aclrules.Allowed.String(), Answers: []Answer{}}
	done := false
	for tenancy, required := range byTenancy(r.Requirements) {
		if done = r.checkTenancy(ctx, c, tenancy, required); done {
			break // what is left has the same answer
		}
	}
	if !done && len(r.policies.names) > 0 {
		r.checkEscalation(ctx, c)
	}
	r.conclude()
}

// tenancy is where rights are looked for.
type tenancy struct{ namespace, partition string }

func (t tenancy) String() string {
	if t.partition == "" {
		return t.namespace
	}
	return t.partition + "/" + t.namespace
}

// byTenancy are the operator's requirements, the default namespace first.
func byTenancy(all []Requirement) func(func(tenancy, []Requirement) bool) {
	var order []tenancy
	parts := map[tenancy][]Requirement{}
	for _, q := range all {
		if q.Holder != HolderOperator {
			continue
		}
		at := tenancy{q.Namespace, q.Partition}
		if parts[at] == nil {
			order = append(order, at)
		}
		parts[at] = append(parts[at], q)
	}
	slices.SortFunc(order, func(a, b tenancy) int { return strings.Compare(a.String(), b.String()) })
	return func(yield func(tenancy, []Requirement) bool) {
		for _, at := range order {
			if !yield(at, parts[at]) {
				return
			}
		}
	}
}

// checkTenancy asks about one namespace. It reports whether what it found out is the
// answer to everything.
func (r *Result) checkTenancy(ctx context.Context, c Checker, at tenancy, required []Requirement) (done bool) {
	answers, err := c.ask(ctx, at, required)
	switch {
	case errors.Is(err, aclrules.ErrDisabled):
		r.find(codeDisabled, "$")
		return true
	case errors.Is(err, aclrules.ErrRefused):
		r.find(codeUnknownToken, "$", "why", err)
		return true
	case errors.Is(err, consulutil.ErrNoNamespaces):
		r.find(codeNamespace, required[0].Path, "namespace", at)
		return false
	case err != nil:
		r.find(codeUnknown, "$", "query", "what the task needs", "why", err, "fix", "try again when the server answers, or admit without a check by -check none")
		return true
	}
	for i, a := range answers {
		r.answer(required[i], a)
	}
	return false
}

// answer adds one answer and its finding.
func (r *Result) answer(q Requirement, a answered) {
	query := q.Query().String()
	if q.Namespace != "" {
		query += " in the namespace " + q.Namespace
	}
	full := Answer{Requirement: q, Decision: a.Decision, Why: a.why()}
	switch {
	case a.Decision == aclrules.Allowed.String():
	case a.Decision == aclrules.Unknown.String():
		full.Policy = ruleText(q)
		r.find(codeUnknown, q.Path, "query", query, "why", a.why(), "fix", "-resolver-token-file takes a token with acl:read, and -check both asks the server")
	case a.Decision == aclrules.Disagree && a.Server == aclrules.Allowed.String():
		r.find(codeDisagree, q.Path, "query", query, "why", a.why())
	default:
		full.Policy, full.Remove = a.policy(q)
		r.find(codeDenied, q.Path, "query", query, "reason", q.Reason, "why", a.why(), "fix", full.fix())
	}
	r.Permissions.Answers = append(r.Permissions.Answers, full)
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

// checkEscalation compares the policies that the task asks the broker for with the
// operator's own rights.
func (r *Result) checkEscalation(ctx context.Context, c Checker) {
	owner, err := c.Resolve(ctx, nil)
	var wanted *aclrules.Report
	if err == nil {
		wanted, err = c.Resolve(ctx, r.policies.names)
	}
	if err != nil {
		r.find(codeUnknown, r.policies.path, "query", "the policies that it hands out", "why", err, "fix", "try again when the server answers")
		return
	}
	if _, disabled := owner.Special(); disabled != nil {
		r.find(codeDisabled, "$")
		return
	}
	for _, e := range aclrules.Covers(owner, wanted) {
		r.find(codeEscalate, r.policies.path, "excess", e)
	}
}

// conclude decides on all findings together.
func (r *Result) conclude() {
	texts := []string{}
	for _, a := range r.Permissions.Answers {
		if a.Policy != "" && !slices.Contains(texts, a.Policy) {
			texts = append(texts, a.Policy)
		}
	}
	r.Permissions.Policy = strings.Join(texts, "\n")
	for _, f := range r.Findings {
		switch f.Code {
		case codeDenied, codeEscalate, codeUnknownToken, codeNamespace:
			r.Permissions.Decision = aclrules.Denied.String()
			return
		case codeUnknown, codeDisagree:
			r.Permissions.Decision = aclrules.Unknown.String()
		}
	}
}

func ruleText(q Requirement) string {
	rule := q.rule()
	return rule.HCL()
}
