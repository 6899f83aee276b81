package setup

import (
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// Names of the objects that both generations have.
const (
	anonymousPolicy = "anonymous-token-policy"
	// crossNamespacePolicy lets the tasks of an Enterprise partition see the
	// services of its other namespaces.
	crossNamespacePolicy = "cross-namespace-read"
)

const (
	// KeyPrefix is the KV prefix of everything that controllers keep in Consul.
	KeyPrefix = "consul-ecs/"
	// keys is the KV prefix of setup.
	keys = KeyPrefix + "setup/"

	// KeyRule is the ACL rule that keys below KeyPrefix need.
	KeyRule = `key_prefix "` + KeyPrefix + `" { policy = "write" }`

	defaultPartition = "default"
	defaultNamespace = "default"
)

// Options vary the state by where the controller runs.
type Options struct {
	// Cluster is the ARN of its ECS cluster.
	Cluster string
	// RolePath and WholeAccount define which IAM roles may log in, see Principal.
	RolePath     string
	WholeAccount bool
	// Partition is the Enterprise admin partition; empty turns partitions and
	// namespaces off.
	Partition string
	// AnonymousRead lets requests without a token read all services and nodes.
	AnonymousRead bool
	// TokenTTL is after what time tokens of the auth methods expire, see CheckTokenTTL. With
	// ForceTokenTTL it is set also while tasks do not replace their tokens before.
	TokenTTL      time.Duration
	ForceTokenTTL bool
	// Address is the IP address of the controller's task, for the cluster's node;
	// empty outside of a task. Agent does not use it.
	Address string
}

// common returns what both generations want: the auth method of services with the rule that
// binds a service's identity, and if asked for what the anonymous token may do.
func common(o Options) (State, error) {
	principal, err := Principal(o.Cluster, o.RolePath, o.WholeAccount)
	if err != nil {
		return State{}, err
	}
	scope := Scope{}
	if o.Partition != "" {
		scope = Scope{Partition: o.Partition, Namespace: defaultNamespace}
	}
	s := State{
		Cluster:   o.Cluster,
		Partition: o.Partition,
		Keys:      keys,
		Methods: []AuthMethod{{
			Name: config.ServiceAuthMethod, Description: "AWS IAM auth method for ECS service tokens",
			Principals: []string{principal}, EntityTags: []string{config.TagServiceName, config.TagNamespace},
			Scope:    scope,
			TokenTTL: o.TokenTTL, ForceTTL: o.ForceTokenTTL,
		}},
		Rules: []BindingRule{{
			Method: config.ServiceAuthMethod, Description: "Bind a service identity from IAM role tag for ECS",
			BindType: api.BindingRuleBindTypeService, BindName: "${entity_tags." + config.TagServiceName + "}",
			Scope: scope,
		}},
	}
	if o.AnonymousRead {
		s.Anonymous = &Policy{
			// Consul on Kubernetes has the same policy, by this description.
			Name: anonymousPolicy, Description: "Anonymous token Policy",
			Rules: anonymousRules(o.Partition), Scope: s.globalScope(), Shared: true,
		}
	}
	if o.Partition != "" {
		s.Methods[0].NamespaceRules = []api.ACLAuthMethodNamespaceRule{{
			Selector:      `entity_tags["` + config.TagNamespace + `"] != ""`,
			BindNamespace: "${entity_tags." + config.TagNamespace + "}",
		}}
	}
	return s, nil
}

const readRules = `node_prefix "" {
  policy = "read"
}
service_prefix "" {
  policy = "read"
}`

func anonymousRules(partition string) string {
	if partition == "" {
		return readRules
	}
	return `partition_prefix "" {
  namespace_prefix "" {
    node_prefix "" {
      policy = "read"
    }
    service_prefix "" {
      policy = "read"
    }
  }
}`
}
