package subcommand

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/failure"
)

// troubleshooting is the page that has a heading for each ID.
const troubleshooting = "docs/TROUBLESHOOTING.md"

func explainCommand() cli.Command {
	var o explainOptions
	return cli.Command{
		Synopsis: "Say what a failure's ID means, and what to do",
		Usage:    "explain [-json] ID... | explain -list [-json]",
		Help: `
Prints what has happened, why, what to do, and a command that shows it, for each ID
that stands at the end of a log line (CE-LOGIN-TAG), or that admit has found
(ADM-NAME). It reads no file and makes no request. A log line may be given in
place of an ID.

Exit codes: 0 explained; 1 an ID is unknown.

Example:
  $ consul-ecs explain CE-LOGIN-TAG
  CE-LOGIN-TAG: The task role has no valid tag with the name of the service.
    why   The binding rule makes the service's name from the tag ...
    fix   Tag the task role (not the task) with consul.hashicorp.com.service-name ...
    show  aws iam list-role-tags --role-name ROLE
    more  docs/TROUBLESHOOTING.md#ce-login-tag`,
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.list, "list", false, "list all IDs with their titles")
			fs.BoolVar(&o.json, "json", false, "print JSON, one object a line")
		},
		FlagsAnywhere: true,
		Run:           o.run,
	}
}

type explainOptions struct{ list, json bool }

func (o *explainOptions) run(_ context.Context, inv *cli.Invocation) error {
	switch {
	case o.list && len(inv.Args) > 0:
		return exit.Usagef("-list takes no ID")
	case o.list:
		return o.printList(inv.Stdout)
	case len(inv.Args) == 0:
		return exit.Usagef("want an ID such as CE-LOGIN-TAG; -list has them all")
	}
	found, unknown := explanations(inv.Args)
	if len(unknown) > 0 {
		return exit.Usagef("unknown: %s; explain -list has all IDs", strings.Join(unknown, ", "))
	}
	if o.json {
		return writeJSON(inv.Stdout, found...)
	}
	for i, f := range found {
		if i > 0 {
			fmt.Fprintln(inv.Stdout)
		}
		if _, err := io.WriteString(inv.Stdout, explained(f)); err != nil {
			return err
		}
	}
	return nil
}

func (o *explainOptions) printList(w io.Writer) error {
	all := slices.Concat(failure.All(), admissionFailures())
	if o.json {
		return writeJSON(w, all...)
	}
	for _, f := range all {
		if _, err := fmt.Fprintf(w, "%-22s %s\n", f.ID, f.Title); err != nil {
			return err
		}
	}
	return nil
}

// explanations returns what is known about IDs, or about log lines that have one, and which of them it does not know.
func explanations(args []string) (found []failure.Failure, unknown []string) {
	codes := admissionFailures()
	for _, arg := range args {
		f, known := failure.Find(arg)
		if i := slices.IndexFunc(codes, func(c failure.Failure) bool {
			return strings.EqualFold(string(c.ID), arg)
		}); !known && i >= 0 {
			f, known = codes[i], true
		}
		if !known {
			f, known = failure.Find(string(failure.Of(arg)))
		}
		if !known {
			unknown = append(unknown, fmt.Sprintf("%q", arg))
			continue
		}
		found = append(found, f)
	}
	return found, unknown
}

// admissionFailures returns admit's codes in the form of failures.
func admissionFailures() (all []failure.Failure) {
	for _, c := range admission.Codes() {
		all = append(all, failure.Failure{
			ID: failure.ID(c.Code), Title: c.Text,
			Why:  "admit reports it as " + string(c.Severity) + ".",
			Fix:  "Follow the text in parentheses at the end of the finding.",
			Show: "consul-ecs admit -output report FILE",
		})
	}
	return all
}

// explained returns the explanation for a terminal.
func explained(f failure.Failure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.ID, f.Title)
	for _, part := range [][2]string{{"why", f.Why}, {"fix", f.Fix}, {"show", f.Show}, {"more", pageOf(f.ID)}} {
		if part[1] != "" {
			fmt.Fprintf(&b, "  %-5s %s\n", part[0], part[1])
		}
	}
	return b.String()
}

// pageOf returns the place in the documentation that is about the ID.
func pageOf(id failure.ID) string {
	if strings.HasPrefix(string(id), "ADM-") {
		return "docs/ADMISSION.md"
	}
	return troubleshooting + "#" + strings.ToLower(string(id))
}
