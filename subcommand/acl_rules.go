package subcommand

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

func aclRules(fs *flag.FlagSet) aclVerb {
	var s aclSubject
	s.declare(fs)
	asJSON := fs.Bool("json", false, "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if len(args) > 0 {
			return exit.Usagef("rules: unexpected word %q", args[0])
		}
		report, err := s.report(ctx, inv)
		if err != nil {
			return err
		}
		switch refused, disabled := report.Special(); {
		case refused != nil:
			return &exit.Plain{Err: &exit.RefusedError{Err: refused}}
		case disabled != nil:
			return &exit.Plain{Err: disabled}
		}
		if *asJSON {
			err = writeJSON(inv.Stdout, report.Merged()...)
		} else {
			_, err = io.WriteString(inv.Stdout, report.HCL())
		}
		if err = errors.Join(err, report.Problems()); err != nil {
			return &exit.Plain{Err: err}
		}
		return nil
	}
}

func aclExport(fs *flag.FlagSet) aclVerb {
	datacenter := fs.String("datacenter", "", "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if len(args) > 0 {
			return exit.Usagef("export: unexpected word %q: it writes to standard output", args[0])
		}
		export, err := exportServer(ctx, inv, *datacenter)
		if err != nil {
			return err
		}
		return export.Write(inv.Stdout)
	}
}

// exportServer reads all of a server's ACL objects.
func exportServer(ctx context.Context, inv *cli.Invocation, datacenter string) (*aclrules.Snapshot, error) {
	reader, err := aclReader(inv, consulutil.Options{}, datacenter)
	if err != nil {
		return nil, err
	}
	export, err := reader.Export(ctx)
	if err != nil {
		return nil, plain(err)
	}
	return export, nil
}

// readExport reads what export has written.
func readExport(file string) (*aclrules.Snapshot, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, exit.Usagef("-from: %w", err)
	}
	defer f.Close()
	export, err := aclrules.ReadSnapshot(f)
	if err != nil {
		return nil, exit.Usagef("-from %s: %w", file, err)
	}
	return export, nil
}

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
		text, err := readInput(inv, file)
		errs = append(errs, err)
		found = append(found, aclrules.LintText(file, string(text))...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return found, nil
}
