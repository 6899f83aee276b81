package subcommand

import (
	"context"
	"errors"
	"flag"
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
