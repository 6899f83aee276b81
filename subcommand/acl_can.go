package subcommand

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// aclQuestion are the flags of can and explain.
type aclQuestion struct {
	aclSubject
	queries, engine string
	json            bool
}

func (q *aclQuestion) declare(fs *flag.FlagSet) {
	q.aclSubject.declare(fs)
	fs.StringVar(&q.queries, "queries", "", "")
	fs.StringVar(&q.engine, "engine", engineResolver, "")
	fs.BoolVar(&q.json, "json", false, "")
}

func aclCan(fs *flag.FlagSet) aclVerb {
	var q aclQuestion
	q.declare(fs)
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		return q.run(ctx, inv, args, func(w io.Writer, _ *aclrules.Report, answers []aclrules.Answer) error {
			if q.json {
				return writeJSON(w, answers...)
			}
			width := aclrules.Width(answers)
			for _, a := range answers {
				fmt.Fprintln(w, a.Sentence(width))
			}
			return nil
		})
	}
}

func aclExplain(fs *flag.FlagSet) aclVerb {
	var q aclQuestion
	q.declare(fs)
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if q.engine == engineServer {
			return exit.Usagef("-engine server: the server does not explain; use both")
		}
		tree := isTerminal(inv.Stdout)
		return q.run(ctx, inv, args, func(w io.Writer, r *aclrules.Report, answers []aclrules.Answer) error {
			for i, a := range answers {
				switch {
				case q.json:
					if err := writeJSON(w, r.Explained(a)); err != nil {
						return err
					}
					continue
				case i > 0:
					fmt.Fprintln(w)
				}
				io.WriteString(w, r.Explain(a, tree))
			}
			return nil
		})
	}
}

// isTerminal reports whether a person reads along.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// run answers every query and judges all answers together. The report is nil
// when only the server was asked. The writer keeps its error.
func (q *aclQuestion) run(
	ctx context.Context, inv *cli.Invocation, args []string, write func(io.Writer, *aclrules.Report,
		[]aclrules.Answer) error,
) error {
	queries, err := q.parse(inv, args)
	if err != nil {
		return err
	}
	report, answers, err := q.answers(ctx, inv, queries)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(inv.Stdout)
	if err := errors.Join(write(out, report, answers), out.Flush()); err != nil {
		return err
	}
	q.warn(inv, report)
	switch aclrules.WorstAnswer(answers) {
	case aclrules.Denied:
		return &exit.CodeError{Code: exit.CodeRefused}
	case aclrules.Unknown:
		return &exit.CodeError{Code: exit.CodeUnknown}
	}
	return nil
}

// warn prints what the answers do not show: what could not be read and what
// to do about it. JSON has it in every answer that it matters to.
func (q *aclQuestion) warn(inv *cli.Invocation, report *aclrules.Report) {
	w := inv.Stderr
	if token, err := consulutil.EffectiveToken(consulutil.Options{TokenFile: q.tokenFile}); q.shown() && err == nil &&
		token == "" {
		fmt.Fprintln(w, "note: CONSUL_HTTP_TOKEN is not set: these are the rights of requests without a token")
	}
	if report == nil {
		return
	}
	refused, disabled := report.Special()
	problems := report.Problems()
	switch {
	case refused != nil:
	case disabled != nil:
		fmt.Fprintf(w, "warning: %v: every request is allowed there\n", aclrules.ErrDisabled)
	case problems != nil && !q.json:
		fmt.Fprintf(w, "could not be read:\n  %s\n", strings.ReplaceAll(problems.Error(), "\n", "\n  "))
		if q.engine == engineResolver && q.shown() {
			fmt.Fprintln(w, "-engine both asks the server about the token as well")
		}
	}
}

// parse reads the queries of the command line and of the file; all that is
// wrong at once.
func (q *aclQuestion) parse(inv *cli.Invocation, args []string) ([]aclrules.Query, error) {
	if q.engine != engineResolver && q.engine != engineServer && q.engine != engineBoth {
		return nil, exit.Usagef("-engine %q: want resolver, server or both", q.engine)
	}
	if len(args)%2 != 0 {
		return nil,
			exit.Usagef("%q has no access: want pairs of RESOURCE[:SEGMENT] and ACCESS, such as service:web write",
				args[len(args)-1])
	}
	var queries []aclrules.Query
	var errs []error
	add := func(where, what, access string) {
		query, err := aclrules.ParseQuery(what, access)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%w", where, err))
		}
		queries = append(queries, query)
	}
	for i := 0; i < len(args); i += 2 {
		add("", args[i], args[i+1])
	}
	if q.queries != "" {
		errs = append(errs, q.parseFile(inv, add))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	if len(queries) == 0 {
		return nil, exit.Usagef("no question: want pairs of RESOURCE[:SEGMENT] and ACCESS, such as service:web write")
	}
	return queries, nil
}

func (q *aclQuestion) parseFile(inv *cli.Invocation, add func(where, what, access string)) error {
	text, err := readInput(inv, q.queries)
	if err != nil {
		return fmt.Errorf("-queries: %w", err)
	}
	var errs []error
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// A segment may have spaces: the access is the last word.
		at := strings.LastIndexAny(line, " \t")
		if at < 0 {
			errs = append(errs, fmt.Errorf("-queries line %d: %q has no access: want RESOURCE[:SEGMENT] ACCESS", i+1,
				line))
			continue
		}
		add(fmt.Sprintf("-queries line %d: ", i+1), strings.TrimSpace(line[:at]), line[at+1:])
	}
	return errors.Join(errs...)
}

// Engines: our reading of the rules, the server's word, and both.
const (
	engineResolver = "resolver"
	engineServer   = "server"
	engineBoth     = "both"
)

// answers asks the engines.
func (q *aclQuestion) answers(
	ctx context.Context, inv *cli.Invocation, queries []aclrules.Query,
) (*aclrules.Report, []aclrules.Answer, error) {
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

func (q *aclQuestion) byServer(
	ctx context.Context, inv *cli.Invocation, queries []aclrules.Query,
) (*aclrules.Report, []aclrules.Answer, error) {
	allowed, err := q.ask(ctx, queries)
	switch {
	case consulutil.UnknownToken(err):
		report := aclrules.NewReport(aclrules.Resolution{Refused: fmt.Errorf("the token: %w", aclrules.ErrNotFound)},
			aclrules.Unknown)
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
func (q *aclQuestion) byBoth(
	ctx context.Context, inv *cli.Invocation, queries []aclrules.Query,
) (*aclrules.Report, []aclrules.Answer, error) {
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

// plain makes an error one for a person, unless it is one of usage.
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
		return nil,
			exit.Usagef("-engine %s: the server judges tokens that it is shown: use -token-file or CONSUL_HTTP_TOKEN",
				q.engine)
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
