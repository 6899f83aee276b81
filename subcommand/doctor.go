package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/doctor"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

const doctorHelp = `
Examines what a task needs to be in the mesh, and says for each part whether it is
right, what is wrong, and what to do. It takes less than 5 s, writes nothing, logs in
nowhere and shows no secret.

Without FILE it runs in a container of the task: configuration, task metadata, AWS
identity and task role, the Consul servers or the agent, the token, the registration,
Envoy and the application's port. It asks what the container allows: only containers
with CONSUL_ECS_CONFIG_JSON know the configuration, consul-ecs-health-sync is best. The
program is on the volume of the task, so that no shell is needed:
  $ aws ecs execute-command --cluster C --task T --container consul-ecs-health-sync \
      --interactive --command "/consul/consul-ecs doctor"
For a task that does not start, run it once with the command of consul-ecs-mesh-init
replaced by doctor (aws ecs run-task --overrides). mesh-init does so by itself when it
fails.

With FILE, on a desk, it checks a task definition as admit does, with the task role in
IAM and what its login would get in Consul, where credentials are at hand.

-bundle writes an archive for a ticket: the findings, the configuration, metadata and
state of Envoy, with tokens, keys and the values of environment variables removed.

Exit codes: 0 nothing is wrong; 1 wrong usage; 2 something is wrong.

Environment:
  CONSUL_ECS_CONFIG_JSON, ECS_CONTAINER_METADATA_URI_V4 and the rest of mesh-init's
  CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and AWS's, with FILE

Example:
  $ consul-ecs doctor
  ok      task metadata  task 0f9d…, 4 containers, desired status RUNNING
  failed  Consul gRPC    gRPC of server 10.0.0.7:8503: … i/o timeout [CE-CONSUL-TIMEOUT]
                         fix: Allow the task's security group to reach …`

func doctorCommand() cli.Command {
	var o doctorOptions
	return cli.Command{
		Synopsis:      "Examine a task or a task definition, and say what is wrong",
		Usage:         "doctor [flags] [FILE|-]",
		Help:          doctorHelp,
		Flags:         o.declare,
		FlagsAnywhere: true,
		Run:           untilSignal(o.run),
	}
}

type doctorOptions struct {
	json    bool
	bundle  string
	offline bool
	desk    admitOptions
}

func (o *doctorOptions) declare(fs *flag.FlagSet) {
	fs.BoolVar(&o.json, "json", false, "print the findings as a JSON list")
	fs.StringVar(&o.bundle, "bundle", "",
		"write a redacted archive for a ticket to `FILE` (.tar.gz), - for standard output")
	fs.BoolVar(&o.offline, "offline", false, "with FILE: ask neither AWS nor Consul")
	fs.StringVar(&o.desk.mesh, "config", "", "with FILE: mesh `file`, as in admit")
	fs.StringVar(&o.desk.images, "images", "", "with FILE: lock `file` of images, as in admit")
	fs.StringVar(&o.desk.check.address, "consul-addr", "", "with FILE: `address` of Consul (default CONSUL_HTTP_ADDR)")
	fs.StringVar(&o.desk.check.tokenFile, "token-file", "", "with FILE: `file` with the token that reads from Consul")
}

func (o *doctorOptions) run(ctx context.Context, inv *cli.Invocation) error {
	var findings []doctor.Finding
	var patient *patient
	switch {
	case len(inv.Args) > 1:
		return exit.Usagef("want one FILE, or none in a task")
	case len(inv.Args) == 1 && o.bundle != "":
		return exit.Usagef("-bundle is for a task: a task definition is a file already")
	case len(inv.Args) == 1:
		var err error
		if findings, err = o.examineDefinition(ctx, inv); err != nil {
			return err
		}
	default:
		patient = newPatient(inv)
		findings = append(patient.findings, doctor.Examine(ctx, doctor.Limit, patient.checks())...)
	}
	if o.bundle != "" {
		if err := patient.bundle(ctx, o.bundle, findings); err != nil {
			return &exit.Plain{Err: err}
		}
	}
	out := inv.Stdout
	if o.bundle == "-" {
		out = inv.Stderr
	}
	var err error
	if o.json {
		err = writeIndented(out, findings)
	} else {
		err = doctor.Write(out, findings)
	}
	if err == nil && len(doctor.FailedOf(findings)) > 0 {
		err = &exit.CodeError{Code: exit.CodeRefused}
	}
	return err
}

// patient is the task that is examined from one of its containers.
type patient struct {
	inv *cli.Invocation
	// cfg is nil when the container has no configuration, or none that is valid.
	cfg    *config.Config
	consul consulAccess
	// dir is the volume of the task as this container sees it.
	dir string
	// findings are what the configuration shows.
	findings []doctor.Finding

	// metadata and arn are what several checks need.
	metadata shared[workload.Task]
	arn      shared[string]
}

// shared is an answer for which the first one who needs it asks; the others wait for it.
type shared[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (a *shared[T]) get(ask func() (T, error)) (T, error) {
	a.once.Do(func() { a.value, a.err = ask() })
	return a.value, a.err
}

func newPatient(inv *cli.Invocation) *patient {
	p := &patient{inv: inv, dir: "/consul"}
	if program, err := os.Executable(); err == nil && filepath.Base(program) == workload.FileBinary {
		p.dir = filepath.Dir(program) // it was started from the volume
	}
	none := func(context.Context) (string, error) {
		return "", doctor.Skipf("this container has no %s: run doctor in consul-ecs-health-sync", config.EnvVar)
	}
	check := doctor.Check{Name: "configuration", Ask: none}
	if inv.Getenv(config.EnvVar) != "" {
		cfg, warnings, err := config.ParseAs([]byte(inv.Getenv(config.EnvVar)), inv.Getenv(config.GenerationEnvVar))
		if err == nil {
			p.cfg, p.dir = cfg, cfg.BootstrapDir
			p.consul, err = newConsulAccess(inv, cfg)
		}
		check.Ask = func(context.Context) (string, error) {
			if err != nil {
				return "", err
			}
			found := "valid (" + cfg.GenerationName() + ")"
			for _, w := range warnings {
				found += "; " + w.Path + ": " + w.Message
			}
			return found, nil
		}
		if err != nil {
			p.cfg = nil
		}
	}
	p.findings = doctor.Examine(context.Background(), doctor.Limit, []doctor.Check{check})
	return p
}

// checks returns those that this container allows.
func (p *patient) checks() []doctor.Check {
	checks := []doctor.Check{doctor.Metadata(p.task)}
	if p.cfg != nil {
		checks = append(checks, p.startChecks()...)
	}
	outcome, message, err := meshinit.Outcome(p.dir)
	if errors.Is(err, os.ErrNotExist) {
		return append(checks, doctor.Check{Name: "mesh-init", Ask: func(context.Context) (string, error) {
			return "", doctor.Skipf("it has not run in this task, or its volume is not mounted at %s", p.dir)
		}})
	}
	checks = append(checks, doctor.Start(outcome, message, err))
	if p.cfg != nil {
		checks = append(checks, p.registrationChecks()...)
	}
	return append(checks, doctor.Envoy(p.askEnvoy)...)
}

// startChecks returns the checks of what mesh-init needs.
func (p *patient) startChecks() []doctor.Check {
	var checks []doctor.Check
	if p.cfg.ConsulLogin.Enabled && !p.consul.static {
		checks = append(checks, doctor.Identity(p.identity), doctor.Role(p.serviceName(), p.role))
	} else {
		checks = append(checks, doctor.WithoutLogin()...)
	}
	connect := func() (*api.Client, error) { return consulutil.NewClient(p.consul.clients) }
	checks = append(checks, doctor.Leader(connect, !p.cfg.Agentless()))
	if servers := p.consul.servers; servers != nil {
		checks = append(checks, doctor.GRPC(servers.GRPCAddresses, servers.CheckGRPC))
	}
	return checks
}

func (p *patient) registrationChecks() []doctor.Check {
	var checks []doctor.Check
	connect := func() (*api.Client, error) { return consulutil.NewClient(p.consul.clients) }
	if p.cfg.ConsulLogin.Enabled && !p.consul.static {
		checks = append(checks, doctor.Token(p.serviceName(), p.token, connect))
	}
	checks = append(checks, doctor.Registration(p.workload, p.healthChecks))
	if p.cfg.Gateway == nil {
		checks = append(checks, doctor.Application(p.cfg.Service.Port))
	}
	return checks
}

// task returns the task's metadata as the first call has read them.
func (p *patient) task(ctx context.Context) (workload.Task, error) {
	return p.metadata.get(func() (workload.Task, error) {
		client, err := metadataClient(p.inv)
		if err != nil {
			return workload.Task{}, err
		}
		return client.Task(ctx)
	})
}

func (p *patient) workload(ctx context.Context) (workload.Workload, error) {
	task, err := p.task(ctx)
	if err != nil {
		return workload.Workload{}, err
	}
	return workload.New(p.cfg, task, p.inv.Getenv(regionEnv))
}

// serviceName returns the configured name, empty for a gateway and for one that is the family of the task.
func (p *patient) serviceName() string {
	if p.cfg.Service == nil || p.cfg.Gateway != nil {
		return ""
	}
	return p.cfg.Service.Name
}

func (p *patient) load(task workload.Task) awsutil.LoadOptions {
	return awsutil.LoadOptions{
		Region: p.cfg.ConsulLogin.Region, DefaultRegion: task.Region(), UserAgent: "consul-ecs", Version: cli.Version(),
	}
}

// identity returns the ARN that AWS has answered with to the first call.
func (p *patient) identity(ctx context.Context) (string, error) {
	return p.arn.get(func() (string, error) {
		task, err := p.task(ctx)
		if err != nil {
			return "", doctor.Skipf("the task is not known: %v", err)
		}
		signer, err := awsutil.NewSigner(ctx, p.load(task))
		if err != nil {
			return "", err
		}
		return signer.Identity(ctx, awsutil.BearerOptions{
			Partition: task.Partition(), STSEndpoint: p.cfg.ConsulLogin.STSEndpoint,
		})
	})
}

// role reads the task role, as Consul does with consulLogin.includeEntity.
func (p *patient) role(ctx context.Context) (awsutil.Role, error) {
	if !p.cfg.ConsulLogin.IncludeEntity {
		return awsutil.Role{}, doctor.Skipf("consulLogin.includeEntity is false")
	}
	arn, err := p.identity(ctx)
	if err != nil {
		return awsutil.Role{}, doctor.Skipf("the role is not known")
	}
	task, err := p.task(ctx)
	if err != nil {
		return awsutil.Role{}, doctor.Skipf("the task is not known: %v", err)
	}
	reader := awsutil.RoleReader{Load: p.load(task), Endpoint: cmp.Or(p.inv.Getenv("AWS_ENDPOINT_URL_IAM"),
		p.inv.Getenv("AWS_ENDPOINT_URL"))}
	return reader.Role(ctx, arn)
}

func (p *patient) token() (string, error) {
	path := filepath.Join(p.dir, workload.FileServiceToken)
	secret, err := volume.ReadSecret(path)
	switch {
	case err != nil:
		return "", err
	case secret == "":
		return "", doctor.Skipf("%s does not exist or is empty", path)
	}
	return secret, nil
}

// healthChecks returns the checks of a service by its ID, nil when Consul does not have it.
func (p *patient) healthChecks(ctx context.Context, name, id string) (api.HealthChecks, error) {
	client, err := consulutil.NewClient(p.consul.clients)
	if err != nil {
		return nil, err
	}
	secret, _ := p.token() // without it the environment's
	opts := (&api.QueryOptions{Token: secret}).WithContext(ctx)
	if !p.cfg.Agentless() {
		_, info, err := client.Agent().AgentHealthServiceByIDOpts(id, opts)
		if err != nil || info == nil {
			return nil, err
		}
		return append(api.HealthChecks{}, info.Checks...), nil
	}
	entries, _, err := client.Health().Service(name, "", false, opts)
	i := slices.IndexFunc(entries, func(e *api.ServiceEntry) bool { return e.Service.ID == id })
	if err != nil || i < 0 {
		return nil, err
	}
	return append(api.HealthChecks{}, entries[i].Checks...), nil
}

// envoyAddress returns where the task's Envoy has its admin interface.
func (p *patient) envoyAddress() string {
	for _, name := range []string{workload.FileBootstrap, workload.FileDataplane} {
		if proxy, err := envoy.ReadBootstrap(filepath.Join(p.dir, name)); err == nil {
			return proxy.Admin
		}
	}
	return bootstrap.DefaultAdminBind
}

func (p *patient) askEnvoy(ctx context.Context, path string) ([]byte, error) {
	return envoy.Ask(ctx, http.MethodGet, p.envoyAddress(), path)
}

// doctorAtStart bounds an examination by mesh-init.
const doctorAtStart = 2 * time.Second

// afterStart logs what is wrong with a task whose mesh-init has ended.
func (p *patient) afterStart(ctx context.Context, err error) {
	_, usage := errors.AsType[*exit.UsageError](err)
	switch {
	case usage || ctx.Err() != nil:
	case err != nil:
		p.logFailed(ctx, append([]doctor.Check{doctor.Metadata(p.task)}, p.startChecks()...))
	case p.consul.servers != nil && !p.cfg.TransparentProxy.Enabled: // else the connection is redirected, too
		p.logFailed(ctx, []doctor.Check{doctor.GRPC(p.consul.servers.GRPCAddresses, p.consul.servers.CheckGRPC)})
	}
}

// logFailed makes checks, also when ctx has ended, and logs those that fail.
func (p *patient) logFailed(ctx context.Context, checks []doctor.Check) {
	for _, f := range doctor.FailedOf(doctor.Examine(context.WithoutCancel(ctx), doctorAtStart, checks)) {
		p.inv.Log.Warn("check failed", logkey.Check, f.Check, logkey.Error, f.Found, logkey.Fix, f.Fix)
	}
}
