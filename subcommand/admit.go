package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
)

const admitHelp = `
Reads a plain task definition, puts the containers of the mesh into it, checks the
result, and prints it. Admitting the output again changes nothing.

FILE, or - for standard input, is what aws ecs register-task-definition takes, what
describe-task-definition prints, a CloudFormation template in JSON or YAML, or a
list of container definitions as Terraform has it.

A definition is injected when a docker label or a tag consul.hashicorp.com/mesh-inject
is true, or when -config is given and it is not false. Otherwise the output is the
input. docs/ADMISSION.md has all annotations, the mesh file, and all codes.

-images names a lock of consul-ecs images lock. With it admit writes the ENTRYPOINT and CMD
of an image behind app-entrypoint, its STOPSIGNAL as -stop-signal, and checks its user and
architectures; -pin names the images by digest. Without it, a container whose program only
the image names is not wrapped. No registry is asked.

Where there is a Consul token or address, in flags, the environment or the mesh file, or
with -check, it asks Consul whether the token allows what the task uses there; see
Permissions in docs/ADMISSION.md. It calls AWS with -register and -check-iam only.
Without these the same input gives the same output. The token never becomes part of the
output.

Findings go to standard error, a line each: severity code path: message (fix). A
rejected definition is not printed. Exit codes: 0 admitted, warnings or not; 1 wrong
usage, no task definition, or values of a wrong type in it; 2 rejected; 3 undetermined,
because Consul did not answer or rules could not be read; 4 AWS failed.

Environment:
  CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's
  AWS_REGION and the rest of the AWS SDK's, with -register and -check-iam

Example:
  $ consul-ecs admit -config mesh.json web.json > web.mesh.json
  $ aws ecs register-task-definition --cli-input-json file://web.mesh.json`

// admitOptions are the flags of admit.
type admitOptions struct {
	in, mesh, format, resource, images string
	// diff is empty, unified or patch.
	diff, output                string
	strict, list, register, pin bool
	check                       admitCheck
	role                        admitRole
}

// Values of flags.
const (
	diffUnified      = "unified"
	diffPatch        = "patch"
	outputDefinition = "definition"
	outputReport     = "report"
	outputSARIF      = "sarif"
)

func admitCommand() cli.Command {
	var o admitOptions
	return cli.Command{
		Synopsis:      "Turn a plain task definition into one of the mesh, and check it",
		Usage:         "admit [flags] FILE|-",
		Help:          admitHelp,
		Flags:         o.declare,
		FlagsAnywhere: true,
		Run:           o.run,
	}
}

func (o *admitOptions) declare(fs *flag.FlagSet) {
	fs.StringVar(&o.in, "in", "", "`FILE`, in place of the argument")
	fs.StringVar(&o.mesh, "config", "",
		"mesh `file`: the configuration that all tasks share, and settings of the injected containers")
	fs.StringVar(&o.images, "images", "",
		"lock `file` of consul-ecs images: what the images of the containers execute, which definitions do not show")
	fs.BoolVar(&o.pin, "pin", false, "name the images in the lock by their digests, name:tag@sha256:...")
	fs.StringVar(&o.format, "format", "", "ecs, cfn or containers (default: detected from the document)")
	fs.StringVar(&o.resource, "resource", "",
		"logical `ID` of the task definition in a CloudFormation template (default the only one)")
	fs.StringVar(&o.output, "output", outputDefinition,
		"what to print: definition, or all findings: report as a JSON object, sarif for annotations in CI")
	fs.BoolFunc("diff", "print what changes instead: unified, or as JSON Patch with -diff=patch", func(s string) error {
		switch s {
		case "true", diffUnified:
			o.diff = diffUnified
		case diffPatch:
			o.diff = diffPatch
		default:
			return fmt.Errorf("want %s or %s", diffUnified, diffPatch)
		}
		return nil
	})
	fs.BoolVar(&o.strict, "strict", false, "reject a definition with warnings, too")
	o.check.declare(fs)
	o.role.declare(fs)
	fs.BoolVar(&o.register, "register", false,
		"register the admitted definition with ECS, by one call after all checks")
	fs.BoolVar(&o.list, "list", false, "list mutators, validators and codes, and do nothing")
}

func (o *admitOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if o.list {
		return listAdmission(inv.Stdout)
	}
	if o.in != "" {
		inv.Args = append(inv.Args, o.in)
	}
	if err := o.usage(inv.Args); err != nil {
		return err
	}
	doc, err := readAdmitted(inv)
	if err != nil {
		return err
	}
	options := admission.Options{Image: cli.Image(), Format: o.format, Resource: o.resource, RolePath: o.role.path,
		Flags: flagsOf, Pin: o.pin}
	if o.mesh != "" {
		if options.Mesh, err = readMesh(o.mesh); err != nil {
			return err
		}
	}
	if o.images != "" {
		if options.Lock, err = readImageLock(o.images); err != nil {
			return err
		}
	}
	if err := o.check.prepare(inv, options.Mesh); err != nil {
		return err
	}
	options.Token = o.check.token
	err = o.admit(ctx, o.check.guard(inv, o.diff == diffUnified), doc, options)
	if errors.Is(err, secret.ErrLeak) {
		return &exit.Plain{Err: &exit.RefusedError{Err: err}}
	}
	return err
}

// flagsOf returns the flags of a command, nil for an unknown one.
func flagsOf(name string) *flag.FlagSet {
	command, known := commands()[name]
	if !known {
		return nil
	}
	return command.FlagSet(name)
}

// usage checks the flags and arguments.
func (o *admitOptions) usage(args []string) error {
	switch {
	case len(args) != 1:
		return exit.Usagef("want one FILE, or - for standard input")
	case !slices.Contains([]string{outputDefinition, outputReport, outputSARIF}, o.output):
		return exit.Usagef("-output %q: want %s, %s or %s", o.output, outputDefinition, outputReport, outputSARIF)
	case o.pin && o.images == "":
		return exit.Usagef("-pin: the digests are those of a lock; name it by -images")
	case o.output != outputDefinition && o.diff != "":
		return exit.Usagef("-output %s and -diff: take one of them", o.output)
	}
	return nil
}

// admit admits, checks the rights, registers if asked to, and prints.
func (o *admitOptions) admit(ctx context.Context, inv *cli.Invocation, doc []byte, options admission.Options) error {
	options.Register = o.register
	result, err := admission.Admit(doc, options)
	if err != nil {
		if _, invalid := errors.AsType[*taskdef.InvalidError](err); invalid && result != nil {
			err = errors.New("invalid task definition: values of a wrong type") // each is a finding
		}
		err = exit.Usagef("%s: %s", inv.Args[0], secret.NewLeaks(options.Token).Redact(err.Error()))
		return errors.Join(o.printReport(inv, cmp.Or(result, &admission.Result{}), nil, err), err)
	}
	permissions, err := o.check.run(ctx, inv, result)
	if err != nil { // what was found before still counts
		printFindings(inv.Stderr, result)
		return err
	}
	failure := o.role.run(ctx, inv, result, &o.check)
	if failure == nil && o.register && !result.Rejected(o.strict) {
		failure = registerAdmitted(ctx, inv, result.After)
	}
	return o.print(inv, result, permissions, failure)
}

func printFindings(w io.Writer, r *admission.Result) {
	for _, f := range r.Findings {
		fmt.Fprintln(w, f)
	}
}

// maxDocument bounds what is read. CloudFormation takes templates of 1 MB.
const maxDocument = 4 << 20

func readAdmitted(inv *cli.Invocation) ([]byte, error) {
	var doc []byte
	var err error
	if inv.Args[0] == "-" {
		doc, err = cli.ReadAll(inv.Stdin, "standard input", maxDocument)
	} else {
		doc, err = cli.ReadFile(inv.Args[0], maxDocument)
	}
	if err != nil {
		return nil, exit.Usagef("read the task definition: %w", err)
	}
	return doc, nil
}

func readMesh(file string) (*admission.Mesh, error) {
	doc, err := cli.ReadFile(file, maxDocument)
	if err != nil {
		return nil, exit.Usagef("read the mesh file: %w", err)
	}
	mesh, err := admission.ParseMesh(doc)
	if err != nil {
		return nil, exit.Usagef("%s: %w", file, err)
	}
	return mesh, nil
}

// admitReport is what -output report prints.
type admitReport struct {
	Admitted bool                `json:"admitted"`
	Injected bool                `json:"injected"`
	Format   string              `json:"format"`
	Volumes  []string            `json:"volumes"`
	Findings []admission.Finding `json:"findings"`
	// Usages are by namespace. Permissions are absent without a check.
	Usages       map[string]*admission.UseSummary `json:"usages"`
	Requirements []admission.Requirement          `json:"requirements"`
	Permissions  *admission.Permissions           `json:"permissions,omitempty"`
	// Error is why the document is no task definition, or what failed in AWS.
	Error string `json:"error,omitempty"`
}

// print prints the findings and an admitted definition. Failure is what failed in AWS.
func (o *admitOptions) print(
	inv *cli.Invocation, r *admission.Result, permissions *admission.Permissions, failure error,
) error {
	rejected := r.Rejected(o.strict)
	if err := o.printReport(inv, r, permissions, failure); err != nil {
		return err
	}
	switch {
	case failure != nil:
		fmt.Fprintf(inv.Stderr, "consul-ecs admit: %v\n", failure)
		return &exit.CodeError{Code: exit.CodeAWS}
	case r.Undetermined(o.strict):
		return &exit.CodeError{Code: exit.CodeUnknown}
	case rejected:
		return &exit.CodeError{Code: exit.CodeRefused}
	}
	if o.output != outputDefinition {
		return nil
	}
	text := r.After.Bytes()
	switch o.diff {
	case diffUnified:
		text = []byte(taskdef.Diff(r.Plain, r.After))
	case diffPatch:
		text = taskdef.Patch(r.Before, r.After)
	}
	_, err := inv.Stdout.Write(text)
	return err
}

// printReport prints the findings as -output says. Failure ended the run, and is not
// about a right or a rule.
func (o *admitOptions) printReport(
	inv *cli.Invocation, r *admission.Result, permissions *admission.Permissions, failure error,
) error {
	switch o.output {
	case outputReport:
		report := admitReport{
			Admitted: !r.Rejected(o.strict) && failure == nil, Injected: r.Injected, Format: r.Format,
			Volumes: append([]string{}, r.Volumes...), Findings: append([]admission.Finding{}, r.Findings...),
			Usages: r.Usages, Requirements: append([]admission.Requirement{}, r.Requirements...),
			Permissions: permissions,
		}
		if failure != nil {
			report.Error = failure.Error()
		}
		return writeIndented(inv.Stdout, report)
	case outputSARIF:
		log := sarifOf(r, filepath.ToSlash(inv.Args[0]), cli.Version(), o.strict)
		if failure != nil {
			log.Runs[0].Invocations = []sarifInvocation{{Notifications: []sarifNotification{{"error",
				sarifText{failure.Error()}}}}}
		}
		return writeIndented(inv.Stdout, log)
	}
	printFindings(inv.Stderr, r)
	return nil
}

// listAdmission prints the steps on a line, and each code on one.
func listAdmission(w io.Writer) error {
	mutators, validators := admission.Steps()
	_, err := fmt.Fprintf(w, "%s | %s\n", strings.Join(mutators, " "), strings.Join(validators, " "))
	for _, c := range admission.Codes() {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-16s %-8s %s\n", c.Code, c.Severity, c.Text)
		}
	}
	return err
}
