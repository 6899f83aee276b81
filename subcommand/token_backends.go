package subcommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/broker"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// tokenBackend is a kind of backend: how token-broker checks its flags and makes it, and what
// token-receive can do with its tokens.
type tokenBackend struct {
	name string
	// flags returns the flags of token-broker that no other backend takes.
	flags func(f *brokerFlags) []backendFlag
	// consulPolicies means that its tokens have policies of Consul, and checksPolicies that these
	// are always compared with what -check-policies permits.
	consulPolicies, checksPolicies bool
	// endless means that it can issue tokens without expiry.
	endless bool
	new     func(f *brokerFlags, inv *cli.Invocation, consul *api.Client,
		methods []backend.LoginMethod) (backend.Backend, error)
	// actions returns what a task can do with its tokens, nil if the environment has no address of
	// the system that made them.
	actions func(inv *cli.Invocation) (*receiver.TokenActions, error)
}

// backendFlag is a flag of one backend.
type backendFlag struct {
	name, value string
	required    bool
}

var tokenBackends = []tokenBackend{
	{
		name: backend.ConsulLogin, consulPolicies: true, new: newLoginBackend, actions: loginActions,
		flags: func(f *brokerFlags) []backendFlag {
			return []backendFlag{{"-login-methods", f.methods, true}, {"-login-key-file", f.loginKey, true}}
		},
	},
	{
		name: backend.ConsulACL, consulPolicies: true, checksPolicies: true, endless: true, new: newACLBackend,
		actions: aclActions,
		flags:   func(*brokerFlags) []backendFlag { return nil },
	},
	{
		name: backend.Vault, new: newVaultBackend, actions: vaultActions,
		flags: func(f *brokerFlags) []backendFlag {
			return []backendFlag{
				{"-vault-addr", f.vaultAddr, true}, {"-vault-ca-file", f.vaultCA, false},
				{"-vault-role", f.vaultRole, false},
			}
		},
	},
}

// tokenBackendOf finds a backend by its name.
func tokenBackendOf(name string) (tokenBackend, error) {
	i := slices.IndexFunc(tokenBackends, func(k tokenBackend) bool { return k.name == name })
	if i < 0 {
		return tokenBackend{}, exit.Usagef("-backend %q: want %s", name, namesWhere(anyBackend))
	}
	return tokenBackends[i], nil
}

func anyBackend(tokenBackend) bool { return true }

// namesWhere returns the names of the backends that match, for a sentence.
func namesWhere(match func(tokenBackend) bool) string {
	var names []string
	for _, k := range tokenBackends {
		if match(k) {
			names = append(names, k.name)
		}
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func newACLBackend(
	_ *brokerFlags, _ *cli.Invocation, consul *api.Client, _ []backend.LoginMethod,
) (backend.Backend, error) {
	return &backend.ACLBackend{Client: consul}, nil
}

func newLoginBackend(
	f *brokerFlags, _ *cli.Invocation, consul *api.Client, methods []backend.LoginMethod,
) (backend.Backend, error) {
	key, err := backend.ReadLoginKey(f.loginKey)
	if err != nil {
		return nil, exit.Usagef("-login-key-file: %w", err)
	}
	return &backend.LoginBackend{Client: consul, Methods: methods, Key: key}, nil
}

func newVaultBackend(
	f *brokerFlags, inv *cli.Invocation, _ *api.Client, _ []backend.LoginMethod,
) (backend.Backend, error) {
	noToken := usageErrorIf(inv.Getenv("VAULT_TOKEN")+inv.Getenv("VAULT_TOKEN_FILE") == "",
		"-backend %s: VAULT_TOKEN or VAULT_TOKEN_FILE is required", backend.Vault)
	c, err := backend.NewVaultClient(backend.VaultOptions{Address: f.vaultAddr, CAFile: f.vaultCA,
		Namespace: f.namespace})
	if err = errors.Join(noToken, err); err != nil {
		return nil, err
	}
	return &backend.VaultBackend{Client: c, Role: f.vaultRole,
		Token: func() (secret.Value, error) { return vaultToken(inv) }}, nil
}

func (f *brokerFlags) loginMethods() ([]backend.LoginMethod, error) {
	var methods []backend.LoginMethod
	for _, pair := range splitNames(f.methods) {
		name, text, _ := strings.Cut(pair, "=")
		ttl, err := time.ParseDuration(text)
		if err != nil || name == "" || ttl < broker.MinTTL || ttl > broker.MaxTTL {
			return nil, exit.Usagef("-login-methods: want name=duration from %s to %s, got %q", broker.MinTTL,
				broker.MaxTTL, pair)
		}
		methods = append(methods, backend.LoginMethod{Name: name, TTL: ttl})
	}
	return methods, nil
}

// vaultToken reads the token for each request: an agent replaces the file, and may be writing it.
func vaultToken(inv *cli.Invocation) (secret.Value, error) {
	if file := inv.Getenv("VAULT_TOKEN_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return secret.Value{}, fmt.Errorf("VAULT_TOKEN_FILE: %w", err)
		}
		token := secret.New(strings.TrimSpace(string(text)))
		if token.Empty() {
			return secret.Value{}, fmt.Errorf("VAULT_TOKEN_FILE: %s is empty; wait for the agent that writes it", file)
		}
		return token, nil
	}
	return secret.New(inv.Getenv("VAULT_TOKEN")), nil
}

// tokenActions returns what this task can do with its tokens, by backend.
func tokenActions(inv *cli.Invocation) (map[string]receiver.TokenActions, error) {
	all := map[string]receiver.TokenActions{}
	for _, k := range tokenBackends {
		actions, err := k.actions(inv)
		if err != nil {
			return nil, err
		}
		if actions != nil {
			all[k.name] = *actions
		}
	}
	return all, nil
}

func loginActions(inv *cli.Invocation) (*receiver.TokenActions, error) {
	actions, err := aclActions(inv)
	if actions != nil {
		actions.Revoke = newConsulHolder(inv).logout
	}
	return actions, err
}

func aclActions(inv *cli.Invocation) (*receiver.TokenActions, error) {
	if inv.Getenv(api.HTTPAddrEnvName) == "" {
		return nil, nil
	}
	consul := newConsulHolder(inv)
	return &receiver.TokenActions{Alive: consul.alive, Ready: consul.ready}, nil
}

func vaultActions(inv *cli.Invocation) (*receiver.TokenActions, error) {
	address := inv.Getenv(vaultAddrEnv)
	if address == "" {
		return nil, nil
	}
	client, err := backend.NewVaultClient(backend.VaultOptions{
		Address: address, CAFile: inv.Getenv("VAULT_CACERT"), Namespace: inv.Getenv("VAULT_NAMESPACE"),
	})
	if err != nil {
		return nil, err
	}
	return &receiver.TokenActions{
		Alive: func(ctx context.Context, token secret.Value) (bool, error) {
			_, err := client.LookupSelf(ctx, token)
			if errors.Is(err, backend.ErrPrivilege) {
				return false, nil
			}
			return err == nil, err
		},
		Renew:  client.RenewSelf,
		Revoke: client.RevokeSelf,
	}, nil
}

// consulHolder makes its client for each call: the environment may name a CA or token
// file that is written later, and by this command.
type consulHolder struct {
	options consulutil.Options
	log     hclog.Logger
}

// alive makes a consistent read: a server that is starting does not know the tokens of its
// log yet.
func (h consulHolder) alive(ctx context.Context, token secret.Value) (bool, error) {
	client, err := consulutil.NewClient(h.options)
	if err != nil {
		return false, err
	}
	read := (&api.QueryOptions{Token: token.Reveal(), RequireConsistent: true}).WithContext(ctx)
	_, _, err = client.ACL().TokenReadSelf(read)
	if consulutil.UnknownToken(err) {
		return false, nil
	}
	return err == nil, err
}

func newConsulHolder(inv *cli.Invocation) consulHolder {
	return consulHolder{consulutil.Options{CAPEM: strings.TrimSpace(inv.Getenv(httpsCAPEMEnv))}, inv.Log}
}

func (h consulHolder) ready(ctx context.Context, token secret.Value) error {
	client, err := consulutil.NewClient(h.options)
	if err != nil {
		return err
	}
	return consulutil.WaitReplicated(ctx, client, token.Reveal(), h.log)
}

func (h consulHolder) logout(ctx context.Context, token secret.Value) error {
	client, err := consulutil.NewClient(h.options)
	if err != nil {
		return err
	}
	return consulutil.Logout(ctx, client, token.Reveal())
}
