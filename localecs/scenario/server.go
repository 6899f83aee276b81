package scenario

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// setUpLimit bounds the start and the setup of the server.
const setUpLimit = 60 * time.Second

// startServer starts the server in a cluster's VPC and sets up what the scenario needs
// in it. The client has the management token, which is token. The secrets of the
// created tokens are added to the cluster's.
func startServer(ctx context.Context, vpc *cluster.Cluster, c *file.Consul, token string) (*cluster.Running,
	*api.Client, error) {
	files, ca, err := files(c, token)
	if err != nil {
		return nil, nil, err
	}
	running, err := vpc.StartService(ctx, cluster.Service{
		Name: "consul-server", Image: c.Image, Args: args(c), Address: c.Address, Ports: ports(), Dirs: []string{
			"/consul/data",
		},
		Files: files,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("start consul server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	client, err := consulutil.NewClient(consulutil.Options{
		Address: consulAddress(c), Token: token,
		Timeout: time.Minute, DialContext: vpc.Fabric().Infra().DialContext,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := awaitLeader(ctx, client, running); err != nil {
		return nil, nil, err
	}
	secrets, err := setUp(ctx, c, client, vpc.AWSEndpoint())
	if err != nil {
		return nil, nil, fmt.Errorf("set up consul: %w", err)
	}
	if c.CASecret != "" {
		secrets[c.CASecret] = ca
	}
	for name, value := range secrets {
		vpc.PutSecret(name, value)
	}
	return running, client, nil
}

// consulAddress returns the server's HTTP API, in the cluster's network.
func consulAddress(c *file.Consul) string { return "http://" + c.Address + ":8500" }

// awaitLeader waits until the server takes ACL writes, also after it was down. It
// gives up when ctx or the server has ended.
func awaitLeader(ctx context.Context, client *api.Client, running *cluster.Running) error {
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	err := pollUntil(ctx, func() (bool, error) {
		select {
		case <-running.Done():
			return false, errors.New("exited")
		default:
		}
		_, _, err := client.ACL().TokenReadSelf((&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for consul server: %w: %s (log: %s)", err, cluster.LastLine(running.LogFile),
			running.LogFile)
	}
	return nil
}

// The server finds its configuration here: what the scenario adds, and what this package
// sets, which wins; and its certificate with the key.
const (
	furtherFile = "/consul/scenario/server.json"
	configFile  = "/consul/config/server.json"
	certFile    = "/consul/tls/server.pem"
)

// files returns the files of the server by path, and the certificate of its CA when it has TLS.
func files(c *file.Consul, managementToken string) (files map[string]string, ca string, err error) {
	further, err := json.Marshal(c.Config)
	if err != nil {
		return nil, "", fmt.Errorf("encode the configuration of consul: %w", err)
	}
	files = map[string]string{furtherFile: string(further), configFile: config(c, managementToken)}
	if c.CASecret == "" {
		return files, "", nil
	}
	names := []string{"server." + datacenter(c) + ".consul", "localhost"}
	certificate, authority, err := cluster.NewCertificate(names, net.ParseIP(c.Address))
	if err != nil {
		return nil, "", fmt.Errorf("make the certificate of the consul server: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return nil, "", fmt.Errorf("write the key of the consul server: %w", err)
	}
	files[certFile] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return files, string(authority), nil
}

// config returns the configuration of the scenario's Consul server: ACLs on with default deny, quick
// elections. It is no part of the command line, which every local user can read: it has the management
// token.
func config(c *file.Consul, managementToken string) string {
	settings := map[string]any{
		"acl": map[string]any{
			"enabled":        true,
			"default_policy": "deny",
			"tokens":         map[string]any{"initial_management": managementToken, "agent": managementToken},
		},
		"connect":              map[string]any{"enabled": true},
		"disable_update_check": true,
		"performance":          map[string]any{"raft_multiplier": 1},
		"ports":                map[string]any{"grpc": 8502, "dns": -1},
	}
	if c.CASecret != "" {
		settings["ports"] = map[string]any{"https": 8501, "grpc": -1, "grpc_tls": 8503, "dns": -1}
		settings["tls"] = map[string]any{"defaults": map[string]any{"cert_file": certFile, "key_file": certFile}}
	}
	text, _ := json.Marshal(settings)
	return string(text)
}

func datacenter(c *file.Consul) string { return cmp.Or(c.Datacenter, "dc1") }

// args returns the server's command line: one server, and config.
func args(c *file.Consul) []string {
	return []string{
		"consul", "agent", "-server", "-bootstrap-expect=1", "-log-level=warn",
		"-node=consul-server", "-data-dir=/consul/data",
		"-datacenter=" + datacenter(c), "-bind=" + c.Address, "-client=" + c.Address,
		"-config-file=" + furtherFile, "-config-file=" + configFile,
	}
}

// ports returns what the server listens on: server, Serf in the LAN and WAN, HTTP, HTTPS, gRPC, and
// gRPC with TLS.
func ports() []network.Port {
	var all []network.Port
	for _, n := range []int{8300, 8301, 8302, 8500, 8501, 8502, 8503} {
		all = append(all, network.Port{Number: n})
	}
	return append(all, network.Port{Number: 8301, Protocol: "udp"}, network.Port{Number: 8302, Protocol: "udp"})
}

// setUp creates the auth methods, tokens and config entries of the scenario. It
// returns the tokens' secrets by their names in the task definitions.
func setUp(ctx context.Context, c *file.Consul, client *api.Client, awsEndpoint string) (map[string]string, error) {
	secrets := map[string]string{}
	w := (&api.WriteOptions{}).WithContext(ctx)
	for _, m := range c.AuthMethods {
		if err := createAuthMethod(m, client, w, awsEndpoint); err != nil {
			return nil, fmt.Errorf("auth method %s: %w", m.Name, err)
		}
	}
	for i, t := range c.Tokens {
		policy, _, err := client.ACL().PolicyCreate(&api.ACLPolicy{Name: fmt.Sprintf("scenario-token-%d", i+1),
			Rules: t.Rules}, w)
		if err != nil {
			return nil, fmt.Errorf("policy for %s: %w", t.Secret, err)
		}
		token, _, err := client.ACL().TokenCreate(&api.ACLToken{
			Description: "scenario token for " + t.Secret,
			Policies:    []*api.ACLTokenPolicyLink{{ID: policy.ID}},
		}, w)
		if err != nil {
			return nil, fmt.Errorf("token for %s: %w", t.Secret, err)
		}
		secrets[t.Secret] = token.SecretID
	}
	for _, entry := range c.ConfigEntries {
		// As the file has it: the types of the API package may have fields that the
		// server does not know.
		if _, err := client.Raw().Write("/v1/config", entry, nil, w); err != nil {
			return nil, fmt.Errorf("config entry %v/%v: %w", entry["Kind"], entry["Name"], err)
		}
	}
	return secrets, nil
}

// createAuthMethod creates an auth method that asks the simulated STS and IAM, and
// its binding rule.
func createAuthMethod(m file.AuthMethod, client *api.Client, w *api.WriteOptions, awsEndpoint string) error {
	if (m.BindService == "") == (m.BindRules == "") {
		return errors.New("want either bindService or bindRules")
	}
	_, _, err := client.ACL().AuthMethodCreate(&api.ACLAuthMethod{
		Name: m.Name,
		Type: "aws-iam",

		MaxTokenTTL: m.MaxTokenTTL,
		Config: map[string]any{
			"BoundIAMPrincipalARNs":  m.BoundPrincipals,
			"EnableIAMEntityDetails": true,
			"IAMEntityTags":          m.EntityTags,
			"STSEndpoint":            awsEndpoint,
			"IAMEndpoint":            awsEndpoint,
		},
	}, w)
	if err != nil {
		return err
	}
	rule := &api.ACLBindingRule{AuthMethod: m.Name, BindType: api.BindingRuleBindTypeService, BindName: m.BindService}
	if m.BindRules != "" {
		rule.BindType, rule.BindName = api.BindingRuleBindTypeRole, m.Name
		if err := createRole(m, client, w); err != nil {
			return err
		}
	}
	_, _, err = client.ACL().BindingRuleCreate(rule, w)
	return err
}

func createRole(m file.AuthMethod, client *api.Client, w *api.WriteOptions) error {
	if _, _, err := client.ACL().PolicyCreate(&api.ACLPolicy{Name: m.Name, Rules: m.BindRules}, w); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	role := &api.ACLRole{Name: m.Name, Policies: []*api.ACLRolePolicyLink{{Name: m.Name}}}
	if _, _, err := client.ACL().RoleCreate(role, w); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	return nil
}
