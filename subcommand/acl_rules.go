package subcommand

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/meshtask/consul-ecs/aclrules/snapshot"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/consulutil/aclread"
	"github.com/meshtask/consul-ecs/internal/cli"
)

func aclRules(fs *flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	var s aclSubject
	s.declare(fs)
	asJSON := fs.Bool("json", false, "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if len(args) > 0 {
			return cli.Usagef("rules: unexpected word %q", args[0])
		}
		report, err := s.report(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			for _, rule := range report.Merged() {
				if err := writeJSON(inv.Stdout, rule); err != nil {
					return err
				}
			}
		} else if _, err := io.WriteString(inv.Stdout, report.HCL()); err != nil {
			return err
		}
		if err := report.Problems(); err != nil {
			return &cli.Plain{Err: err}
		}
		return nil
	}
}

func aclExport(fs *flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	datacenter := fs.String("datacenter", "", "")
	return func(ctx context.Context, inv *cli.Invocation, args []string) error {
		if len(args) > 0 {
			return cli.Usagef("export: unexpected word %q: it writes to standard output", args[0])
		}
		export, err := exportServer(ctx, *datacenter)
		if err != nil {
			return err
		}
		return export.Write(inv.Stdout)
	}
}

// exportServer reads all of a server's ACL objects.
func exportServer(ctx context.Context, datacenter string) (*snapshot.Snapshot, error) {
	client, err := consulutil.NewClient(consulutil.Options{})
	if err != nil {
		return nil, err
	}
	reader := aclread.New(client)
	if datacenter == "" {
		if datacenter, err = reader.Datacenter(ctx); err != nil {
			return nil, &cli.Plain{Err: err}
		}
	}
	export, err := reader.Export(ctx, datacenter)
	if err != nil {
		return nil, &cli.Plain{Err: err}
	}
	return export, nil
}

// readExport reads what export has written.
func readExport(file string) (*snapshot.Snapshot, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, cli.Usagef("-from: %w", err)
	}
	defer f.Close()
	export, err := snapshot.Read(f)
	if err != nil {
		return nil, cli.Usagef("-from %s: %w", file, err)
	}
	return export, nil
}
