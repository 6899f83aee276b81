package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/snapshot"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// linted is a finding, for machines as it is.
type linted struct {
	Object  string `json:"object"`
	Line    int    `json:"line,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// String is a finding as compilers write theirs.
func (l linted) String() string {
	if l.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", l.Object, l.Code, l.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", l.Object, l.Line, l.Code, l.Message)
}

// Codes of findings beside those of a policy's rules.
const (
	codeInvalid  = "invalid"  // no policy at all
	codeSelector = "selector" // a binding rule that never matches
)

func aclLint(fs *flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	from := fs.String("from", "", "")
	asJSON := fs.Bool("json", false, "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		found, err := findings(ctx, *from, args)
		if err != nil {
			return err
		}
		for _, l := range found {
			if *asJSON {
				err = writeJSON(inv.Stdout, l)
			} else {
				_, err = fmt.Fprintln(inv.Stdout, l)
			}
			if err != nil {
				return err
			}
		}
		if len(found) > 0 {
			return &cli.ExitError{Code: cli.ExitRefused}
		}
		return nil
	}
}

// findings are about files, or about all of an export, or all of a server.
func findings(ctx context.Context, from string, files []string) ([]linted, error) {
	if len(files) > 0 {
		return lintFiles(files)
	}
	var export *snapshot.Snapshot
	var err error
	if from != "" {
		export, err = readExport(from)
	} else {
		export, err = exportServer(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	var found []linted
	for _, p := range export.Policies {
		found = append(found, lintPolicy(p.Name, p.Rules)...)
	}
	for _, m := range export.AuthMethods {
		for _, b := range export.Bindings[m.Name] {
			if err := m.CheckSelector(b.Selector); err != nil {
				found = append(found, linted{Object: "binding rule " + b.ID, Code: codeSelector, Message: fmt.Sprintf("%q never matches: %v", b.Selector, err)})
			}
		}
	}
	return found, nil
}

func lintFiles(files []string) ([]linted, error) {
	var found []linted
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		errs = append(errs, err)
		found = append(found, lintPolicy(file, string(text))...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return found, nil
}

func lintPolicy(name, text string) []linted {
	lints, err := aclrules.LintText(text)
	if err != nil {
		return []linted{{Object: name, Code: codeInvalid, Message: err.Error()}}
	}
	var found []linted
	for _, l := range lints {
		found = append(found, linted{name, l.Line, l.Code, l.Message})
	}
	return found
}
