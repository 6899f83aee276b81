package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

func aclLint(fs *flag.FlagSet) aclVerb {
	from := fs.String("from", "", "")
	datacenter := fs.String("datacenter", "", "")
	asJSON := fs.Bool("json", false, "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		found, err := findings(ctx, inv, *from, *datacenter, args)
		if err != nil {
			return err
		}
		for _, f := range found {
			if *asJSON {
				err = writeJSON(inv.Stdout, f)
			} else {
				_, err = fmt.Fprintln(inv.Stdout, f)
			}
			if err != nil {
				return err
			}
		}
		if len(found) > 0 {
			return &exit.CodeError{Code: exit.CodeRefused}
		}
		return nil
	}
}

// findings are about files, or about all of an export, or all of a server.
func findings(ctx context.Context, inv *cli.Invocation, from, datacenter string, files []string) ([]aclrules.Finding, error) {
	switch {
	case len(files) > 0 && from != "":
		return nil, exit.Usagef("lint: %s and -from: give files or an export", files[0])
	case len(files) > 0:
		return lintFiles(inv, files)
	}
	var export *aclrules.Snapshot
	var err error
	if from != "" {
		export, err = readExport(from)
	} else {
		export, err = exportServer(ctx, inv, datacenter)
	}
	if err != nil {
		return nil, err
	}
	return export.Lint(), nil
}

// lintFiles lints policies; - is standard input.
func lintFiles(inv *cli.Invocation, files []string) ([]aclrules.Finding, error) {
	var found []aclrules.Finding
	var errs []error
	for _, file := range files {
		var text []byte
		var err error
		if file == "-" {
			text, err = io.ReadAll(inv.Stdin)
		} else {
			text, err = os.ReadFile(file)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, aclrules.LintNamedText(file, string(text))...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return found, nil
}
