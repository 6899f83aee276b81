package subcommand

import (
	"flag"

	"github.com/meshtask/consul-ecs/broker"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/cli"
)

func tokenBrokerCommand() cli.Command {
	var f brokerFlags
	return cli.Command{
		Synopsis: "Issue Consul or Vault tokens to tasks that ECS vouches for",
		Usage:    "token-broker -policies PATTERNS -networks CIDRS [flags]",
		Help: `
Runs in a task of the ECS cluster, as an ECS service. A task asks for a token with
consul-ecs token-receive and needs no credentials: the broker asks ECS about the task,
takes the policies and the TTL of the token from docker labels of the task's revision

  consul.hashicorp.com/policies   names, separated by commas or spaces; required
  consul.hashicorp.com/ttl        1m to 168h (default 72h), or task with -allow-task-life

and posts a single-use handle, sealed to a key of the request, to the address that ECS
names. The task redeems the handle over TLS; then the token is made. When ECS shows the
task as stopped, its token is revoked within 2 minutes.

Anyone who may register task definitions with these labels and start them can get such
tokens: treat ecs:RegisterTaskDefinition, ecs:RunTask, ecs:UpdateService and iam:PassRole
on the cluster as permissions to grant tokens. -policies limits which.

Endpoints: POST /v1/token, /v1/unwrap, /v1/rotate and /v1/revoke, GET /token, /v1/token/ID,
/v1/health and /metrics. Tasks must reach -listen, and the broker their callback port.

The task role needs ecs:DescribeTasks and ecs:DescribeTaskDefinition, and for a cluster
that was deleted ecs:DescribeClusters. The token of CONSUL_HTTP_TOKEN needs:
  key_prefix "consul-ecs/token-broker/" { policy = "write" }   (with -store kv)
  session_prefix "" { policy = "write" }                       (with -store kv)
  acl = "read"                                                 (with -check-policies or -ceiling-policy)
  acl = "write"                                                (with -backend consul-acl)
Of several brokers with the same -name and -store kv, one leads; the others redirect to
its -advertise URL.

The audit log has one line of JSON for every transition of a request, without secrets.
While it cannot be written, no tokens are given, and /v1/health answers 503.
The exit code is 0 after TERM or INT; 1 for a usage error; 2 when Consul refuses the
token; 3 when the task metadata cannot be read.

Environment:
  CONSUL_HTTP_ADDR and others    the Consul servers
  CONSUL_HTTP_TOKEN              the token, or a file's in CONSUL_HTTP_TOKEN_FILE
  CONSUL_CACERT_PEM              CA certificates of the servers, as text
  VAULT_TOKEN                    the broker's token, or a file's in VAULT_TOKEN_FILE
  ECS_CONTAINER_METADATA_URI_V4  set by ECS, for the cluster
  AWS_REGION and the rest        the AWS SDK's; the region is the cluster's

Example:
  $ CONSUL_HTTP_ADDR=https://consul.example.com:8501 CONSUL_HTTP_TOKEN=... \
      consul-ecs token-broker -policies 'app-*' -networks 10.0.0.0/16 \
      -cert-file /tls/broker.pem -key-file /tls/broker-key.pem \
      -advertise https://broker-1.example.com:8443 \
      -login-methods broker-72h=72h,broker-1h=1h -login-key-file /keys/broker.pem`,
		Flags: f.declare,
		Run:   service(f.run),
	}
}

// brokerFlags are the options of token-broker.
type brokerFlags struct {
	// rules have all but Clusters and Networks.
	rules                                                        broker.Rules
	clusters, networks, proxies                                  string
	listen, certFile, keyFile, advertise, name, store, auditFile string
	backend, namespace, ceiling, methods, loginKey               string
	vaultAddr, vaultCA, vaultRole                                string
	level                                                        string
	plaintext, unsealed, unnamed, checkPolicies, json            bool
}

func (f *brokerFlags) declare(fs *flag.FlagSet) {
	f.declareRules(fs)
	f.declareService(fs)
	f.declareBackend(fs)
	logLevelFlag(fs, &f.level)
	fs.BoolVar(&f.json, "log-json", false, "log as JSON")
}

func (f *brokerFlags) declareRules(fs *flag.FlagSet) {
	fs.Func("policies", "policies that tokens may have, `patterns` such as app-*, separated by commas (required)",
		setNames(&f.rules.Policies))
	fs.StringVar(&f.networks, "networks", "",
		"`CIDRs` in which tasks have their addresses, separated by commas (required)")
	fs.StringVar(&f.clusters, "clusters", "",
		"`ARNs` of the clusters whose tasks may have tokens, separated by commas, all of one region (default the "+
			"broker's)")
	fs.Func("families", "task definition families that may have tokens, `patterns` separated by commas (default all)",
		setNames(&f.rules.Families))
	fs.Func("groups", "task groups that may have tokens, `patterns` such as service:web (default all)",
		setNames(&f.rules.Groups))
	fs.Func("started-by", "startedBy of tasks that may have tokens, `patterns` such as ecs-svc/* (default all)",
		setNames(&f.rules.StartedBy))
	fs.BoolVar(&f.rules.AllowOverrides, "allow-overrides", false,
		"give tokens to tasks that override the command, environment or roles of their task definition")
	fs.BoolVar(&f.rules.RefuseExecuteCommand, "refuse-execute-command", false,
		"give no tokens to tasks in which ECS Exec is enabled")
	fs.BoolVar(&f.rules.RequireAdmission, "require-admission", false,
		"give tokens only to tasks whose task definition has the tag that consul-ecs admit wrote, and was not changed "+
			"since")
	fs.BoolVar(&f.rules.RequireDigests, "require-digests", false,
		"give tokens only to tasks whose task definition names every image by its digest")
	fs.BoolVar(&f.rules.TaskLife, "allow-task-life", false,
		"issue tokens without expiry to tasks with the ttl label task: only this broker ends them, when the task has "+
			"stopped (consul-acl with -store kv)")
	fs.BoolVar(&f.rules.TrustTags, "trust-tags", false,
		"take annotations that the task definition lacks from the task's tags, which anyone with ecs:TagResource can "+
			"change")
	fs.IntVar(&f.rules.MinPort, "min-port", 1024, "lowest `port` to which a handle is pushed")
	fs.IntVar(&f.rules.MaxPort, "max-port", 65535, "highest `port` to which a handle is pushed")
	fs.BoolVar(&f.unsealed, "allow-unsealed", false,
		"push handles that are not sealed to callers without a key, and serve GET /token: anyone who reads the push "+
			"can redeem the handle first")
	fs.StringVar(&f.proxies, "trusted-proxies", "",
		"`CIDRs` of proxies before the broker, separated by commas; they name the task last in X-Forwarded-For")
	fs.BoolVar(&f.unnamed, "allow-unknown-address", false,
		"serve requests for which a trusted proxy sends no X-Forwarded-For, without comparing their address with the "+
			"task's: any host that reaches the proxy can ask in a task's name, and delay its token")
}

func (f *brokerFlags) declareService(fs *flag.FlagSet) {
	fs.StringVar(&f.listen, "listen", ":8443", "`address` to serve, host:port or :port")
	fs.StringVar(&f.certFile, "cert-file", "", "`file` of the certificate chain, PEM; read again when it changes")
	fs.StringVar(&f.keyFile, "key-file", "", "`file` of the certificate's key, PEM")
	fs.BoolVar(&f.plaintext, "insecure-plaintext", false,
		"serve without TLS, behind a proxy that terminates it: tokens are sent in clear text")
	fs.StringVar(&f.advertise, "advertise", "",
		"`URL` under which tasks reach this broker, for the redirects of others (default: others answer 503)")
	fs.StringVar(&f.name, "name", "default", "`name` that brokers share, one of which leads")
	fs.StringVar(&f.store, "store", "kv",
		"where issued tokens are recorded: kv (Consul), or memory for a single broker")
	fs.StringVar(&f.auditFile, "audit-file", "", "`file` to which the audit log is appended (default stdout)")
}

func (f *brokerFlags) declareBackend(fs *flag.FlagSet) {
	fs.StringVar(&f.backend, "backend", backend.ConsulLogin, namesWhere(anyBackend))
	fs.StringVar(&f.namespace, "namespace", "", "namespace of the tokens (Enterprise, OpenBao)")
	fs.BoolVar(&f.checkPolicies, "check-policies", false,
		"read each policy in Consul and refuse those that write acl, keyring or operator; always with consul-acl")
	fs.StringVar(&f.ceiling, "ceiling-policy", "",
		"`name` of a Consul policy: tokens that would grant more than its rules do are refused; includes "+
			"-check-policies")
	fs.StringVar(&f.methods, "login-methods", "",
		"JWT auth methods for consul-login with their MaxTokenTTL, `name=duration` separated by commas")
	fs.StringVar(&f.loginKey, "login-key-file", "",
		"`file` of the Ed25519 key that signs for consul-login, PKCS #8 in PEM")
	fs.StringVar(&f.vaultAddr, "vault-addr", "", "`URL` of the Vault server: https, or http on a loopback address")
	fs.StringVar(&f.vaultCA, "vault-ca-file", "",
		"`file` of the CA certificates of the Vault server, PEM (default the system's)")
	fs.StringVar(&f.vaultRole, "vault-role", "",
		"`name` of Vault's token role for the tokens (default "+backend.VaultRole+")")
}
