package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

// Leader checks that Consul answers and has a leader, and counts the servers. joined means that an agent answers, whose
// knowing a leader shows that it has joined.
func Leader(connect func() (*api.Client, error), joined bool) Check {
	return Check{"Consul HTTP", func(ctx context.Context) (string, error) {
		client, err := connect()
		if err != nil {
			return "", err
		}
		if err := consulutil.HasLeader(ctx, client); err != nil {
			return "", err
		}
		peers, err := client.Status().PeersWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return "", fmt.Errorf("list the peers of the Consul servers: %w", err)
		}
		found := fmt.Sprintf("has a leader, servers: %d", len(peers))
		if joined {
			found = "the agent has joined, " + found
		}
		return found, nil
	}}
}

// GRPC checks that connections can be made to the servers' gRPC port, on which Envoy's configuration depends.
func GRPC(
	addresses func(context.Context) ([]string, error), connect func(ctx context.Context, address string) error,
) Check {
	return Check{"Consul gRPC", func(ctx context.Context) (string, error) {
		all, err := addresses(ctx)
		if err != nil {
			return "", err
		}
		var failed []error
		for _, address := range all {
			if err := connect(ctx, address); err != nil {
				failed = append(failed, fmt.Errorf("gRPC of server %s: %w", address, err))
			}
		}
		if len(failed) > 0 {
			return "", errors.Join(failed...)
		}
		return "connected to " + strings.Join(all, ", "), nil
	}}
}

// Token checks that Consul knows the task's token, and that it is for the service. read returns the secret.
func Token(service string, read func() (string, error), connect func() (*api.Client, error)) Check {
	return Check{"token", func(ctx context.Context) (string, error) {
		secret, err := read()
		if err != nil {
			return "", err
		}
		client, err := connect()
		if err != nil {
			return "", err
		}
		token, _, err := client.ACL().TokenReadSelf((&api.QueryOptions{Token: secret}).WithContext(ctx))
		if err != nil {
			return "", fmt.Errorf("read the task's token: %w", err)
		}
		if service != "" && len(token.ServiceIdentities) > 0 &&
			!slices.ContainsFunc(token.ServiceIdentities, func(i *api.ACLServiceIdentity) bool {
				return i.ServiceName == service
			}) {
			return "", fmt.Errorf("the token is for %s: the token needs a service identity for %q",
				token.ServiceIdentities[0].ServiceName, service)
		}
		return "accessor " + token.AccessorID, nil
	}}
}

// Registration checks that service and proxy are in Consul, and that no check of theirs is critical. checks returns the
// checks of a service ID, nil when Consul does not have it.
func Registration(
	w func(context.Context) (workload.Workload, error),
	checks func(ctx context.Context, name, id string) (api.HealthChecks, error),
) Check {
	return Check{"registration", func(ctx context.Context) (string, error) {
		task, err := w(ctx)
		if err != nil {
			return "", Skipf("the task is not known: %v", err)
		}
		registered := [][2]string{{task.Proxy.Name, task.Proxy.ID}}
		if task.ID != "" {
			registered = append(registered, [2]string{task.Name, task.ID})
		}
		var critical []string
		for _, r := range registered {
			all, err := checks(ctx, r[0], r[1])
			switch {
			case err != nil:
				return "", fmt.Errorf("read the checks of %s: %w", r[1], err)
			case all == nil:
				return "", fmt.Errorf("%s is not registered in Consul", r[1])
			}
			for _, c := range all {
				if c.Status == api.HealthCritical {
					critical = append(critical, fmt.Sprintf("%s of %s (%s)", c.Name, r[1], oneLine(c.Output)))
				}
			}
		}
		if len(critical) > 0 {
			return "", errors.New("service stays critical in Consul: " + strings.Join(critical, ", "))
		}
		return task.Proxy.ID + " and its checks pass", nil
	}}
}
