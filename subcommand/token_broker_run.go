package subcommand

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// brokerAgent names the broker to AWS.
	brokerAgent = "consul-ecs-token-broker"
	// brokerKeys is the KV prefix of all brokers.
	brokerKeys = "consul-ecs/token-broker/"
	// brokerReadLimit bounds reading a request, and brokerWriteLimit its answer.
	brokerReadLimit, brokerWriteLimit = 5 * time.Second, 20 * time.Second
	// brokerConns bounds the connections of a client of Consul.
	brokerConns = 64
)

func (f *brokerFlags) run(ctx context.Context, inv *cli.Invocation) error {
	mistakes := errors.Join(cli.NoArgs(inv), inv.UseLogger(f.level, f.json), f.check())
	options, err := f.options(inv)
	methods, methodErr := f.loginMethods()
	if err = errors.Join(mistakes, err, methodErr); err != nil {
		return err
	}
	if pair := overlapping(options.TrustedProxies, options.Rules.Networks); len(pair) > 0 {
		inv.Log.Warn("-trusted-proxies and -networks overlap: a task there can ask in the name of any other task; "+
			"put the proxies into subnets without tasks, and name only these", logkey.Address, pair)
	}
	if len(options.Rules.Clusters) == 0 {
		at, err := locate(ctx, inv, "")
		if err != nil {
			return err
		}
		options.Rules.Clusters = []awsutil.Cluster{at.cluster}
	}
	region := options.Rules.Clusters[0].Region
	config, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{Region: region, UserAgent: brokerAgent,
		Version: cli.Version()})
	if err != nil {
		return err
	}
	// Tasks ask again: they are answered with the cause while they wait.
	options.Source = awsutil.NewECSReader(config, awsutil.ECSReaderOptions{CallsPerSecond: broker.DescribeRate,
		Attempts: 2})
	o := brokerConsul(inv)
	client, err := consulutil.NewClient(o)
	if err != nil {
		return err
	}
	o.Namespace = f.namespace // of tokens and policies; the records are in the default one
	issuer, err := consulutil.NewClient(o)
	if err != nil {
		return err
	}
	kind, err := tokenBackendOf(f.backend)
	if err != nil {
		return err
	}
	options.BackendName = kind.name
	if options.Backend, err = kind.new(f, inv, issuer, methods); err != nil {
		return err
	}
	if f.checkPolicies || f.ceiling != "" || kind.checksPolicies {
		options.Ceiling = func(ctx context.Context, names []string) error {
			return backend.CheckCeiling(ctx, consulutil.NewACLReader(issuer, ""), f.ceiling, names)
		}
	}
	switch f.store {
	case "memory":
		options.Store = &broker.MemoryStore{}
		return f.serve(ctx, inv, options, nil)
	case "kv":
		return f.serveWithRecords(ctx, inv, options, client)
	}
	return unknownStore(f.store)
}

func unknownStore(name string) error { return exit.Usagef("-store %q: want kv or memory", name) }

// serveWithRecords runs the broker, with its records in Consul's KV, while it has the leader's lock.
func (f *brokerFlags) serveWithRecords(
	ctx context.Context, inv *cli.Invocation, o broker.Options, client *api.Client,
) error {
	lock, err := consulutil.NewLock(consulutil.LockOptions{
		Consul: brokerConsul(inv), Key: brokerKeys + f.name + "/leader", Session: brokerAgent, Holder: f.advertise,
		Log:     inv.Log,
		KeyRule: `key_prefix "` + brokerKeys + `" { policy = "write" }`,
	})
	if err != nil {
		return err
	}
	o.Store = broker.KVStore{Client: client, Prefix: brokerKeys + f.name + "/tasks/", Lock: lock.Key,
		Session: lock.SessionID}
	return f.serve(ctx, inv, o, lock)
}

// brokerConsul bounds calls of Consul by less than the broker allows for a redemption, and
// their number: the broker has two such clients.
func brokerConsul(inv *cli.Invocation) consulutil.Options {
	o := consulOptions(inv)
	o.Timeout, o.MaxConns = consulutil.RequestTimeout, brokerConns
	return o
}

// check returns the mistakes in flags that depend on each other.
func (f *brokerFlags) check() error {
	low, high := f.rules.MinPort, f.rules.MaxPort
	errs := []error{
		usageErrorIf(len(f.rules.Policies) == 0, "-policies is required"),
		usageErrorIf(len(splitNames(f.networks)) == 0, "-networks is required"),
	}
	if f.store != "kv" && f.store != "memory" {
		errs = append(errs, unknownStore(f.store))
	}
	for _, pattern := range slices.Concat(f.rules.Policies, f.rules.Families, f.rules.Groups, f.rules.StartedBy) {
		_, err := path.Match(pattern, "")
		errs = append(errs, usageErrorIf(err != nil, "pattern %q: %w", pattern, err))
	}
	return errors.Join(append(errs,
		usageErrorIf(low < 1 || high > 65535 || low > high,
			"-min-port %d and -max-port %d: want a range within 1 to 65535", low, high),
		usageErrorIf(f.plaintext && f.certFile+f.keyFile != "",
			"-insecure-plaintext and -cert-file or -key-file exclude each other"),
		usageErrorIf(!f.plaintext && (f.certFile == "" || f.keyFile == ""),
			"give -cert-file and -key-file, or -insecure-plaintext behind a proxy that has TLS"),
		usageErrorIf(f.unnamed && f.proxies == "",
			"-allow-unknown-address: give -trusted-proxies, whose requests it is about"),
		usageErrorIf(f.advertise != "" && f.store == "memory",
			"-advertise is for several brokers, and -store memory for one"),
		usageErrorIf(f.advertise != "" && !isHTTPS(f.advertise),
			"-advertise %q: want a URL such as https://broker-1.example.com:8443", f.advertise),
		usageErrorIf(f.name == "" || strings.Contains(f.name, "/"), "-name %q: want a name without slashes", f.name),
		f.checkBackend())...)
}

// checkBackend refuses flags that the backend does not use, and asks for those it needs.
func (f *brokerFlags) checkBackend() error {
	chosen, err := tokenBackendOf(f.backend)
	if err != nil {
		return err
	}
	errs := []error{
		usageErrorIf(f.rules.TaskLife && !(chosen.endless && f.store == "kv"),
			"-allow-task-life: want -backend %s and -store kv, with which a broker that is started again revokes tokens",
			namesWhere(func(k tokenBackend) bool { return k.endless })),
		usageErrorIf((f.checkPolicies || f.ceiling != "") && !chosen.consulPolicies,
			"-check-policies and -ceiling-policy read Consul's policies, and -backend %s issues others", f.backend),
	}
	for _, k := range tokenBackends {
		var required []string
		given := true
		for _, own := range k.flags(f) {
			errs = append(errs, usageErrorIf(own.value != "" && k.name != f.backend,
				"%s is for -backend %s, and not for %s", own.name, k.name, f.backend))
			if own.required {
				required, given = append(required, own.name), given && own.value != ""
			}
		}
		errs = append(errs, usageErrorIf(k.name == f.backend && !given, "-backend %s: give %s", k.name,
			strings.Join(required, " and ")))
	}
	return errors.Join(errs...)
}

func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.Scheme == "https"
}

// options returns what the flags say, and every mistake in those that are parsed here.
func (f *brokerFlags) options(inv *cli.Invocation) (broker.Options, error) {
	o := broker.Options{
		Rules: f.rules, Dial: new(net.Dialer).DialContext, AllowUnsealed: f.unsealed, AllowUnknownAddress: f.unnamed,
		Audit:   inv.Stdout,
		Metrics: broker.NewMetrics(cli.Version()), Log: inv.Log,
	}
	var errs [4]error
	o.Rules.Networks, errs[0] = prefixes("-networks", f.networks)
	o.TrustedProxies, errs[1] = prefixes("-trusted-proxies", f.proxies)
	o.Rules.Clusters, errs[2] = f.ecsClusters()
	if f.auditFile != "" {
		file, err := os.OpenFile(f.auditFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if o.Audit = file; err != nil {
			errs[3] = exit.Usagef("-audit-file: %w", err)
		}
	}
	return o, errors.Join(errs[:]...)
}

func prefixes(flag, text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, s := range splitNames(text) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, exit.Usagef("%s: %q is not a CIDR block such as 10.0.0.0/8", flag, s)
		}
		all = append(all, p)
	}
	return all, nil
}

// overlapping returns the first networks of two lists that have addresses in common.
func overlapping(a, b []netip.Prefix) []string {
	for _, p := range a {
		for _, q := range b {
			if p.Overlaps(q) {
				return []string{p.String(), q.String()}
			}
		}
	}
	return nil
}

// ecsClusters returns those of the flag.
func (f *brokerFlags) ecsClusters() ([]awsutil.Cluster, error) {
	var all []awsutil.Cluster
	for _, arn := range splitNames(f.clusters) {
		c, err := awsutil.ParseCluster(arn)
		if err != nil || len(all) > 0 && c.Region != all[0].Region {
			return nil, exit.Usagef("-clusters: want ARNs of clusters of one region, got %q", arn)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all, nil
}

// serve runs the broker behind its listener.
func (f *brokerFlags) serve(ctx context.Context, inv *cli.Invocation, o broker.Options, elector broker.Elector) error {
	b := broker.New(o)
	listener, err := f.listener(inv.Log)
	if err != nil {
		return err
	}
	defer f.serveAPI(listener, b.Handler(), inv.Log)()
	return b.Run(ctx, elector)
}

func (f *brokerFlags) listener(log hclog.Logger) (net.Listener, error) {
	var config *tls.Config
	if !f.plaintext {
		c := &serverCertificate{certFile: f.certFile, keyFile: f.keyFile, log: log}
		if _, err := c.load(); err != nil {
			return nil, exit.Usagef("%w", err)
		}
		config = c.config()
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, exit.Usagef("-listen: %w", err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return listener, nil
}

// serveAPI answers until stop is called.
func (f *brokerFlags) serveAPI(listener net.Listener, handler http.Handler, log hclog.Logger) (stop func()) {
	log.Info("serving", logkey.Address, listener.Addr().String())
	return serve(listener, log, &http.Server{
		Handler: handler, ReadHeaderTimeout: brokerReadLimit, ReadTimeout: brokerReadLimit,
		WriteTimeout: brokerWriteLimit,
	})
}
