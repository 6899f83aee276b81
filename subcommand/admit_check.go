package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// admitCheck are the flags of admit that are about the operator's rights in Consul.
type admitCheck struct {
	engine, address, tokenFile, resolverTokenFile string
	unauthenticated, anonymous                    bool

	token secret.Value
	// opened are the transports of all clients: a server counts connections.
	opened []http.RoundTripper
}

// A request of a check is made up to three times, each of them bounded. The whole bounds
// the pauses as well.
const (
	checkAttempts = 3
	checkLimit    = 5 * time.Second
	checkWhole    = 30 * time.Second
)

// checkNone is the value of -check with which no engine is asked.
const checkNone = "none"

func (c *admitCheck) declare(fs *flag.FlagSet) {
	fs.StringVar(&c.engine, "check", "",
		"`engine` that decides what the token allows: server, resolver, both or none (default both when there is a "+
			"token or a Consul address, else none)")
	fs.StringVar(&c.address, "consul-addr", "", "`address` of Consul (default CONSUL_HTTP_ADDR)")
	fs.StringVar(&c.tokenFile, "token-file", "",
		"`file` with the operator's token (default CONSUL_HTTP_TOKEN_FILE, CONSUL_HTTP_TOKEN, or "+
			"admission.operatorToken of the mesh file)")
	fs.StringVar(&c.resolverTokenFile, "resolver-token-file", "",
		"`file` with a token that has acl:read, to read the rules of the operator's token (default that token itself)")
	fs.BoolVar(&c.unauthenticated, "allow-unauthenticated", false, "admit without a token, and skip the check")
	fs.BoolVar(&c.anonymous, "anonymous", false, "check the rights of requests without a token when there is none")
}

// prepare reads the token and chooses the engine.
func (c *admitCheck) prepare(inv *cli.Invocation, mesh *admission.Mesh) error {
	engines := []string{"", admission.EngineServer, admission.EngineResolver, admission.EngineBoth, checkNone}
	if !slices.Contains(engines, c.engine) {
		return exit.Usagef("-check %q: want server, resolver, both or none", c.engine)
	}
	token, err := consulutil.EffectiveToken(consulutil.Options{TokenFile: c.tokenFile})
	if err != nil {
		return exit.Usagef("the operator's token: %w", err)
	}
	c.token = secret.New(token)
	if c.token.Empty() && mesh != nil {
		c.token = mesh.OperatorToken()
	}
	if c.resolverTokenFile != "" {
		if _, err := consulutil.EffectiveToken(consulutil.Options{TokenFile: c.resolverTokenFile}); err != nil {
			return exit.Usagef("-resolver-token-file: %w", err)
		}
	}
	c.address = cmp.Or(c.address, inv.Getenv("CONSUL_HTTP_ADDR"))
	if c.engine == "" {
		c.engine = checkNone
		if !c.token.Empty() || c.address != "" {
			c.engine = admission.EngineBoth
		}
	}
	if c.engine != checkNone {
		if _, err := consulutil.NewConfig(c.options(c.token)); err != nil {
			return exit.Usagef("-check %s: %w", c.engine, err)
		}
	}
	return nil
}

// run checks what the result requires of Consul. It returns nil when nothing was checked.
func (c *admitCheck) run(
	ctx context.Context, inv *cli.Invocation, r *admission.Result,
) (*admission.Permissions, error) {
	switch {
	case c.engine == checkNone || !r.UsesConsul():
		return nil, nil
	case c.token.Empty() && c.unauthenticated:
		r.Unchecked()
		return nil, nil
	case c.token.Empty() && !c.anonymous:
		return nil,
			exit.Usagef("there is no token whose rights could be checked: use -token-file or CONSUL_HTTP_TOKEN; -anonymous checks the rights of requests without a token, -allow-unauthenticated and -check none check nothing")
	}
	defer c.closeConnections()
	checker := admission.PermissionChecker{
		Engine: c.engine, Anonymous: c.token.Empty(),
		Authorize: func(ctx context.Context, namespace, partition string, queries []aclrules.Query) ([]bool, error) {
			o := c.options(c.token)
			o.Namespace, o.Partition = namespace, partition
			server, err := consulutil.NewAuthorizer(o, "")
			if err != nil {
				return nil, err
			}
			return server.Authorize(ctx, c.token.Reveal(), queries)
		},
		Resolve: func(ctx context.Context, policies []string) (*aclrules.Report, error) {
			subject := aclrules.Subject{Self: policies == nil}
			for _, name := range policies {
				subject.PolicyLinks = append(subject.PolicyLinks, aclrules.Link{Name: name})
			}
			return c.resolve(ctx, inv, "", subject)
		},
	}
	return checker.Check(ctx, r), nil
}

// options reach Consul with a token.
func (c *admitCheck) options(token secret.Value) consulutil.Options {
	return consulutil.Options{
		Address: c.address, Token: token.Reveal(), Timeout: checkWhole,
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			c.opened = append(c.opened, next)
			return consulutil.Attempts(checkAttempts, checkLimit, hclog.NewNullLogger())(next)
		},
	}
}

func (c *admitCheck) closeConnections() {
	for _, transport := range c.opened {
		(&http.Client{Transport: transport}).CloseIdleConnections()
	}
}

// login returns what reads the rights that a login would get; nil when Consul is not asked.
func (c *admitCheck) login(
	inv *cli.Invocation,
) func(context.Context, string, aclrules.Login) (*aclrules.Report, error) {
	if c.engine == checkNone || c.token.Empty() && c.unauthenticated {
		return nil
	}
	return func(ctx context.Context, datacenter string, l aclrules.Login) (*aclrules.Report, error) {
		defer c.closeConnections()
		return c.resolve(ctx, inv, datacenter, aclrules.Subject{Login: &l})
	}
}

// resolve reads the rules of a subject, as a datacenter judges them.
func (c *admitCheck) resolve(
	ctx context.Context, inv *cli.Invocation, datacenter string, subject aclrules.Subject,
) (*aclrules.Report, error) {
	own, err := aclReader(inv, c.options(c.token), datacenter)
	if err != nil {
		return nil, err
	}
	reader := own
	var objects aclrules.Objects = own
	if c.resolverTokenFile != "" {
		o := c.options(secret.Value{})
		o.TokenFile = c.resolverTokenFile
		if reader, err = aclReader(inv, o, datacenter); err != nil {
			return nil, fmt.Errorf("-resolver-token-file: %w", err)
		}
		objects = shownToken{reader, own}
	}
	if datacenter, err = reader.Datacenter(ctx); err != nil {
		return nil, err
	}
	found := aclrules.Resolver{Objects: objects, Datacenter: datacenter, Now: time.Now()}.Resolve(ctx, subject)
	switch err := errors.Join(found.Errors...); {
	case !errors.Is(err, consulutil.ErrUnknownReader):
	case reader == own:
		return nil, fmt.Errorf("the token is %w", aclrules.ErrNotFound)
	default:
		return nil, consulutil.ErrUnknownReader
	}
	return aclrules.NewReport(found, reader.DefaultPolicy(ctx)), nil
}

// guard lets neither the output nor an error have the operator's token in it.
func (c *admitCheck) guard(inv *cli.Invocation, diff bool) *cli.Invocation {
	if c.token.Empty() {
		return inv
	}
	leaks, guarded := secret.NewLeaks(c.token), *inv
	guarded.Stderr, guarded.Stdout = leaks.Redactor(inv.Stderr), leaks.Writer(inv.Stdout)
	if diff { // which shows what was removed
		guarded.Stdout = leaks.Redactor(inv.Stdout)
	}
	return &guarded
}
