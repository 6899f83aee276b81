package subcommand

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// Engines: our reading of the rules, the server's word, and both.
const (
	engineResolver = "resolver"
	engineServer   = "server"
	engineBoth     = "both"
)

// answers asks the engines.
func (q *aclQuestion) answers(ctx context.Context, inv *cli.Invocation, queries []aclrules.Query) (*aclrules.Report, []aclrules.Answer, error) {
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	switch q.engine {
	case engineServer:
		return q.byServer(ctx, inv, queries)
	case engineBoth:
		return q.byBoth(ctx, inv, queries)
	}
	report, err := q.report(ctx, inv)
	if err != nil {
		return nil, nil, err
	}
	return report, byRules(report, queries), nil
}

func byRules(report *aclrules.Report, queries []aclrules.Query) []aclrules.Answer {
	all := make([]aclrules.Answer, len(queries))
	for i, query := range queries {
		all[i] = report.Can(query)
	}
	return all
}

func (q *aclQuestion) byServer(ctx context.Context, inv *cli.Invocation, queries []aclrules.Query) (*aclrules.Report, []aclrules.Answer, error) {
	allowed, err := q.ask(ctx, queries)
	switch {
	case consulutil.UnknownToken(err):
		report := aclrules.NewReport(aclrules.Resolution{Refused: fmt.Errorf("the token: %w", aclrules.ErrNotFound)}, aclrules.Unknown)
		return report, byRules(report, queries), nil
	case consulutil.ACLsDisabled(err):
		report := aclrules.NewReport(aclrules.Resolution{Disabled: aclrules.ErrDisabled}, aclrules.Unknown)
		return report, byRules(report, queries), nil
	case errors.Is(err, consulutil.ErrNoAuthorize):
		return nil, nil, &exit.Plain{Err: fmt.Errorf("%w: use -engine resolver", err)}
	case err != nil:
		return nil, nil, plain(err)
	}
	all := make([]aclrules.Answer, len(queries))
	for i, query := range queries {
		all[i] = aclrules.ByServer(query, allowed[i])
	}
	return nil, all, nil
}

// byBoth compares. A server without the endpoint leaves our own reading, and so
// does one that has no such token or no ACLs, which the report states.
func (q *aclQuestion) byBoth(ctx context.Context, inv *cli.Invocation, queries []aclrules.Query) (*aclrules.Report, []aclrules.Answer, error) {
	allowed, err := q.ask(ctx, queries)
	switch {
	case errors.Is(err, consulutil.ErrNoAuthorize):
		fmt.Fprintf(inv.Stderr, "warning: %v: the resolver's answers follow\n", err)
	case err != nil && !consulutil.UnknownToken(err) && !consulutil.ACLsDisabled(err):
		return nil, nil, plain(err)
	}
	report, err := q.report(ctx, inv)
	if err != nil {
		return nil, nil, err
	}
	all := byRules(report, queries)
	for i := range allowed {
		all[i] = all[i].Compare(allowed[i])
	}
	return report, all, nil
}

// plain is an error for a person, unless it is one of usage.
func plain(err error) error {
	var usage *exit.UsageError
	var network *url.Error
	switch {
	case errors.As(err, &usage):
		return err
	case errors.As(err, &network):
		err = fmt.Errorf("%w (CONSUL_HTTP_ADDR is the server's address)", err)
	}
	return &exit.Plain{Err: err}
}

// ask returns the server's decision for the subject's token.
func (q *aclQuestion) ask(ctx context.Context, queries []aclrules.Query) ([]bool, error) {
	if !q.shown() {
		return nil, exit.Usagef("-engine %s: the server judges tokens that it is shown: use -token-file or CONSUL_HTTP_TOKEN", q.engine)
	}
	token, err := consulutil.EffectiveToken(consulutil.Options{TokenFile: q.tokenFile})
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	server, err := consulutil.NewAuthorizer(consulutil.Options{}, q.datacenter)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return server.Authorize(ctx, token, queries)
}
