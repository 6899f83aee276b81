package subcommand

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"

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
		out := bufio.NewWriter(inv.Stdout)
		if *asJSON {
			err = writeJSON(out, found...)
		} else {
			for _, f := range found {
				fmt.Fprintln(out, f)
			}
		}
		err = errors.Join(err, out.Flush())
		if err == nil && len(found) > 0 {
			err = &exit.CodeError{Code: exit.CodeRefused}
		}
		return err
	}
}

// findings returns those about files, or about all of an export, or all of a server.
func findings(
	ctx context.Context, inv *cli.Invocation, from, datacenter string, files []string,
) ([]aclrules.Finding, error) {
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
		text, err := readInput(inv, file)
		errs = append(errs, err)
		found = append(found, aclrules.LintText(file, string(text))...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return found, nil
}
