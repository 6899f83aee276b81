package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
)

// answered is an answer, with the rules that it is from when they were read.
type answered struct {
	answer aclrules.Answer
	report *aclrules.Report
}

// ask asks the engines about one namespace. The error matches ErrDisabled or ErrRefused
// of aclrules when that is the answer to every question.
func (c PermissionChecker) ask(ctx context.Context, at tenancy, required []Requirement) ([]answered, error) {
	queries := make([]aclrules.Query, len(required))
	for i, q := range required {
		queries[i] = q.Query()
	}
	allowed, err := c.askServer(ctx, at, queries)
	if err != nil {
		return nil, err
	}
	report, err := c.readRules(ctx, at)
	// a token that was given to read, and cannot
	if err != nil && (allowed == nil || errors.Is(err, consulutil.ErrUnknownReader)) {
		return nil, err
	}
	all := make([]answered, len(queries))
	for i, q := range queries {
		switch {
		case report == nil:
			all[i] = answered{aclrules.ByServer(q, allowed[i]), nil}
		case allowed == nil:
			all[i] = answered{report.Can(q), report}
		default:
			all[i] = answered{report.Can(q).Compare(allowed[i]), report}
		}
	}
	return all, nil
}

// askServer returns the server's decisions; nil when the engine does not ask it, or the server has no
// such endpoint and the rules answer as well.
func (c PermissionChecker) askServer(ctx context.Context, at tenancy, queries []aclrules.Query) ([]bool, error) {
	if c.Engine == EngineResolver {
		return nil, nil
	}
	allowed, err := c.Authorize(ctx, at.namespace, at.partition, queries)
	switch {
	case consulutil.ACLsDisabled(err):
		return nil, aclrules.ErrDisabled
	case consulutil.UnknownToken(err):
		return nil, aclrules.ErrNotFound
	case errors.Is(err, consulutil.ErrNoAuthorize) && c.Engine == EngineBoth:
		return nil, nil
	}
	return allowed, err
}

// readRules returns the token's rules; nil when the engine is without them, or for a namespace, whose rules
// only Consul Enterprise knows.
func (c PermissionChecker) readRules(ctx context.Context, at tenancy) (*aclrules.Report, error) {
	if c.Engine == EngineServer {
		return nil, nil
	}
	if at != (tenancy{}) {
		return nil, fmt.Errorf("the namespace or partition %s: %w", at, aclrules.ErrEnterprise)
	}
	report, err := c.Resolve(ctx, nil)
	if err != nil {
		return nil, err
	}
	if refused, disabled := report.Special(); c.Engine == EngineResolver && errors.Join(refused, disabled) != nil {
		return nil, errors.Join(refused, disabled)
	}
	return report, nil
}

// why returns the rule that decided, or what else did.
func (a answered) why() string {
	switch {
	case a.answer.Decision == aclrules.Disagree && a.answer.Rule == "":
		return "the server's decision differs from the rules, of which none applies"
	case a.answer.Decision == aclrules.Disagree:
		return fmt.Sprintf("the server's decision differs from %s, %s", a.answer.Rule, a.answer.Source)
	case a.answer.Rule != "" && a.answer.Why == "":
		return fmt.Sprintf("%s, %s", a.answer.Rule, a.answer.Source)
	}
	return strings.Join(append([]string{a.answer.Why}, a.answer.Missing...), "; ")
}

// policy returns the smallest text that grants what is denied, after rules that no text outranks are removed.
// Sure is false where rules that were not read may be among these.
func (a answered) policy(q Requirement) (text string, remove []string, sure bool) {
	subject := func(prefix bool) string { return aclrules.SubjectText(q.Resource, prefix, q.Segment) + " = " }
	switch {
	case a.answer.Decision == aclrules.Disagree:
		return "", nil, true // more rules do not help
	case a.report == nil:
		return q.HCL(), nil, false
	case q.Below && !strings.HasPrefix(a.answer.Rule, subject(false)) && a.answer.Rule != subject(true)+"deny":
		return q.HCL(), nil, true
	}
	change := a.report.Explained(a.answer).Change
	if change.Add == "" && len(change.Remove) == 0 { // rules that could not be read may stand in its way
		return q.HCL(), nil, false
	}
	for _, p := range change.Remove {
		remove = append(remove, p.Rule+" of "+p.Source)
	}
	return change.Add, remove, true
}
