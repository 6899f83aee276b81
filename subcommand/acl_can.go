package subcommand

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/answer"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
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
	fs.StringVar(&q.engine, "engine", "resolver", "")
	fs.BoolVar(&q.json, "json", false, "")
}

func aclCan(fs *flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	var q aclQuestion
	q.declare(fs)
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		return q.run(ctx, inv, args, func(_ *answer.Report, a answer.Answer) error {
			if q.json {
				return writeJSON(inv.Stdout, a)
			}
			_, err := fmt.Fprintln(inv.Stdout, a.Line())
			return err
		})
	}
}

func aclExplain(fs *flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	var q aclQuestion
	q.declare(fs)
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if q.engine == "server" {
			return cli.Usagef("-engine server: the server does not explain; use both")
		}
		return q.run(ctx, inv, args, func(r *answer.Report, a answer.Answer) error {
			if q.json {
				return writeJSON(inv.Stdout, r.Explained(a))
			}
			_, err := io.WriteString(inv.Stdout, r.Explain(a, isTerminal(inv.Stdout)))
			return err
		})
	}
}

// isTerminal tells whether a person reads along.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// writeJSON writes one object a line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// run answers every query and judges all answers together. The report is nil
// when only the server was asked.
func (q *aclQuestion) run(ctx context.Context, inv *cli.Invocation, args []string, write func(*answer.Report, answer.Answer) error) error {
	queries, err := q.parse(inv, args)
	if err != nil {
		return err
	}
	report, answers, err := q.answers(ctx, queries)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := write(report, a); err != nil {
			return err
		}
	}
	if report != nil && report.Problems() != nil && !q.json {
		fmt.Fprintf(inv.Stderr, "not all could be read:\n%v\n", report.Problems())
	}
	switch answer.Worst(answers) {
	case aclrules.Denied:
		return &cli.ExitError{Code: cli.ExitRefused}
	case aclrules.Unknown:
		return &cli.ExitError{Code: cli.ExitUnknown}
	}
	return nil
}

// parse reads the queries of the command line and of the file; all that is
// wrong at once.
func (q *aclQuestion) parse(inv *cli.Invocation, args []string) ([]aclrules.Query, error) {
	if q.engine != "resolver" && q.engine != "server" && q.engine != "both" {
		return nil, cli.Usagef("-engine %q: want resolver, server or both", q.engine)
	}
	if len(args)%2 != 0 {
		return nil, cli.Usagef("%q has no access: want pairs of RESOURCE[:SEGMENT] and ACCESS", args[len(args)-1])
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
		return nil, &cli.UsageError{Err: err}
	}
	if len(queries) == 0 {
		return nil, cli.Usagef("nothing is asked: want pairs of RESOURCE[:SEGMENT] and ACCESS, such as service:web write")
	}
	return queries, nil
}

func (q *aclQuestion) parseFile(inv *cli.Invocation, add func(where, what, access string)) error {
	in := inv.Stdin
	if q.queries != "-" {
		f, err := os.Open(q.queries)
		if err != nil {
			return fmt.Errorf("-queries: %w", err)
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	var errs []error
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// A segment may have spaces: the access is the last word.
		at := strings.LastIndexAny(line, " \t")
		if at < 0 {
			errs = append(errs, fmt.Errorf("-queries line %d: %q has no access: want RESOURCE[:SEGMENT] ACCESS", n, line))
			continue
		}
		add(fmt.Sprintf("-queries line %d: ", n), strings.TrimSpace(line[:at]), line[at+1:])
	}
	return errors.Join(append(errs, lines.Err())...)
}

// answers asks the engines.
func (q *aclQuestion) answers(ctx context.Context, queries []aclrules.Query) (*answer.Report, []answer.Answer, error) {
	var allowed []bool
	if q.engine != "resolver" {
		var err error
		if allowed, err = q.ask(ctx, queries); err != nil && (q.engine == "server" || !errors.Is(err, consulutil.ErrNoAuthorize)) {
			return nil, nil, &cli.Plain{Err: err}
		}
	}
	if q.engine == "server" {
		var all []answer.Answer
		for i, query := range queries {
			all = append(all, answer.ByServer(query, allowed[i]))
		}
		return nil, all, nil
	}
	report, err := q.report(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []answer.Answer
	for i, query := range queries {
		a := report.Can(query)
		if allowed != nil {
			a = a.Compare(allowed[i])
		}
		all = append(all, a)
	}
	return report, all, nil
}

// ask is the server's word on the subject's token.
func (q *aclQuestion) ask(ctx context.Context, queries []aclrules.Query) ([]bool, error) {
	if q.from != "" || q.accessor != "" || q.login.Method != "" || len(q.policyFiles) > 0 {
		return nil, cli.Usagef("-engine %s: the server judges tokens that it is shown: use -token-file or CONSUL_HTTP_TOKEN", q.engine)
	}
	o := consulutil.Options{TokenFile: q.tokenFile}
	token, err := consulutil.EffectiveToken(o)
	if err != nil {
		return nil, err
	}
	server, err := consulutil.NewAuthorizer(consulutil.Options{})
	if err != nil {
		return nil, err
	}
	return server.Authorize(ctx, token, queries)
}
