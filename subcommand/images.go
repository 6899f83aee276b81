package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/images"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/taskdef"
)

const imagesHelp = `
Reads what the images of task definitions execute, and records it in a file, so
that admit -images needs no registry.

  images lock FILE...      reads the images of task definitions, and writes the lock:
                           reference, digest, and for linux/amd64 and linux/arm64
                           ENTRYPOINT, CMD, USER, STOPSIGNAL, WORKDIR, VOLUME, HEALTHCHECK
  images diff [FILE...]    what has changed in the registries since the lock, for the
                           images of FILEs, without FILE for all of the lock
  images diff OLD NEW      what differs between two locks, without a registry

A FILE (- is standard input) is whatever admit takes: ECS JSON, an answer of
describe-task-definition, a list of containers, or a CloudFormation template, of which all
task definitions are read. With -config the images that a mesh file injects are read, too.
A reference that is known at deployment only is named and skipped. An image is read for
the cpuArchitecture of its task, and fails when it has none for it.

Only manifests and configurations are read, never layers. Credentials are those of
"docker login" and of credential helpers. -from reads a copy in place of the registry: a
directory with an OCI layout, or a file of "docker save". PATH serves the references that
it has names for; REFERENCE=PATH serves this reference by the image of its tag, or by the
only one.

Standard error shows the progress. Exit codes: 0 done, no difference; 1 wrong usage, a
file that is no task definition, a lock that is damaged or of another version; 2 diff
found a difference; 4 a registry did not answer, refused, or has no such image, tag or
architecture: a line for each image, and the old lock is not changed.

Environment:
  DOCKER_CONFIG, REGISTRY_AUTH_FILE  where credentials are, if not in the home directory
  HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE

Example:
  $ consul-ecs images lock -config mesh.json web.json api.json
  $ consul-ecs admit -config mesh.json -images images.lock.json web.json > web.mesh.json
  $ consul-ecs images diff
  nginx:1.27 digest: "sha256:0a39…" -> "sha256:28ed…"
  nginx:1.27 linux/amd64 stopSignal: "SIGQUIT" -> "SIGTERM"
More: docs/IMAGES.md`

// defaultImageLock is the file of a lock, in the current directory.
const defaultImageLock = "images.lock.json"

// imagesOptions are the flags of images.
type imagesOptions struct {
	out, lock, mesh, format string
	from, plainHTTP         []string
	timeout                 time.Duration
	json                    bool
}

func imagesCommand() cli.Command {
	var o imagesOptions
	return cli.Command{
		Synopsis:      "Record what the images of task definitions execute",
		Usage:         "images lock [flags] FILE... | images diff [flags] [FILE...|OLD NEW]",
		Help:          imagesHelp,
		Flags:         o.declare,
		FlagsAnywhere: true,
		Run:           o.run,
	}
}

func (o *imagesOptions) declare(fs *flag.FlagSet) {
	fs.StringVar(&o.out, "o", "", "`FILE` that lock writes, - for standard output (default "+defaultImageLock+")")
	fs.StringVar(&o.lock, "lock", "", "`FILE` that diff compares the registries with (default "+defaultImageLock+")")
	fs.StringVar(&o.mesh, "config", "", "mesh `file`: read the images that it injects, too")
	fs.StringVar(&o.format, "format", "", "ecs, cfn or containers (default: detected from each document)")
	const from = "`[REFERENCE=]PATH` of a copy that is read in place of a registry: an OCI layout or an archive; may " +
		"be repeated"
	fs.Func("from", from, appendTo(&o.from))
	fs.Func("plain-http",
		"`HOST[:PORT]` of a registry without TLS that is not on this machine; may be repeated", appendTo(&o.plainHTTP))
	fs.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long an image may take, and the list of a copy")
	fs.BoolVar(&o.json, "json", false, "print differences as JSON, an object a line")
}

func (o *imagesOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) == 0 {
		return exit.Usagef("want images lock or images diff")
	}
	verb, files := inv.Args[0], inv.Args[1:]
	if err := usageErrorIf(o.timeout <= 0, "-timeout %s: want more than 0", o.timeout); err != nil {
		return err
	}
	switch verb {
	case "lock":
		return o.runLock(ctx, inv, files)
	case "diff":
		return o.runDiff(ctx, inv, files)
	}
	return exit.Usagef("unknown subcommand %q: want lock or diff", verb)
}

// wanted returns the images of all files. What is known at deployment only is named.
func (o *imagesOptions) wanted(inv *cli.Invocation, files []string) ([]images.Wanted, error) {
	options := admission.Options{Image: cli.Image(), Format: o.format, Flags: flagsOf}
	if o.mesh != "" {
		var err error
		if options.Mesh, err = readMesh(o.mesh); err != nil {
			return nil, err
		}
	}
	var wanted []images.Wanted
	var errs []error
	for _, file := range files {
		one := *inv
		one.Args = []string{file}
		doc, err := readAdmitted(&one)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uses, err := admission.Images(doc, options)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		for _, use := range uses {
			if use.Reference == "" {
				text := fmt.Sprintf("skipped %s (container %s) of %s: no reference before deployment",
					use.Path, use.Container, file)
				fmt.Fprintln(inv.Stderr, taskdef.OneLine(text))
				continue
			}
			where := file + ", container " + use.Container
			wanted = append(wanted,
				images.Wanted{Reference: use.Reference, Where: where, Architecture: use.Architecture})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return wanted, nil
}

// read reads images, and shows the progress.
func (o *imagesOptions) read(
	ctx context.Context, inv *cli.Invocation, wanted []images.Wanted,
) (*taskdef.ImageLock, error) {
	options := images.Options{
		Timeout: o.timeout, PlainHTTP: o.plainHTTP, Keychain: authn.DefaultKeychain, Transport: http.DefaultTransport,
	}
	var errs []error
	for _, from := range o.from {
		source, err := images.Open(ctx, from, o.timeout)
		options.From, errs = append(options.From, source), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, exit.Usagef("-from: %w", err)
	}
	shown := progress{terminal: isTerminal(inv.Stderr), out: inv.Stderr}
	options.Report = shown.report
	lock, err := images.Lock(ctx, wanted, options)
	shown.end()
	if err == nil {
		return lock, nil
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprint(inv.Stderr, "consul-ecs images: "+strings.TrimSuffix(line, "\n")+"\n")
	}
	return nil, &exit.CodeError{Code: exit.CodeAWS}
}

// readImageLock reads a lock.
func readImageLock(file string) (*taskdef.ImageLock, error) {
	doc, err := cli.ReadFile(file, maxImageLock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Usagef("read the image lock: %w: `consul-ecs images lock` writes it", err)
	case err != nil:
		return nil, exit.Usagef("read the image lock: %w", err)
	}
	lock, err := taskdef.ParseImageLock(doc)
	if err != nil {
		return nil, exit.Usagef("%s: %w", file, err)
	}
	return lock, nil
}

// maxImageLock bounds a lock: some thousand images.
const maxImageLock = 16 << 20

// sortedWanted returns all images of a lock.
func sortedWanted(lock *taskdef.ImageLock) []images.Wanted {
	var wanted []images.Wanted
	for reference := range lock.Images {
		wanted = append(wanted, images.Wanted{Reference: reference})
	}
	slices.SortFunc(wanted, func(a, b images.Wanted) int { return strings.Compare(a.Reference, b.Reference) })
	return wanted
}
