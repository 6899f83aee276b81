package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// awsIAM is the type of the auth methods by which tasks log in.
const awsIAM = "aws-iam"

// Redirect sets the simulated STS and IAM as endpoints of each new aws-iam auth
// method, as operators do for private endpoints of AWS, until ctx ends.
func Redirect(ctx context.Context, client *api.Client, awsEndpoint string) {
	const pause = 100 * time.Millisecond // a refusal, or a server that is away
	var index uint64
	for ctx.Err() == nil {
		methods, meta, err := client.ACL().AuthMethodList((&api.QueryOptions{WaitIndex: index}).WithContext(ctx))
		for _, m := range methods {
			if err == nil && m.Type == awsIAM {
				err = redirect(ctx, client, m.Name, awsEndpoint)
			}
		}
		if err == nil {
			index = meta.LastIndex
			continue
		}
		_ = retry.Sleep(ctx, pause)
	}
}

// redirect leaves a method alone that has an endpoint.
func redirect(ctx context.Context, client *api.Client, name, awsEndpoint string) error {
	m, _, err := client.ACL().AuthMethodRead(name, (&api.QueryOptions{}).WithContext(ctx))
	if err != nil || m == nil || redirected(m) {
		return err
	}
	m.Config["STSEndpoint"], m.Config["IAMEndpoint"] = awsEndpoint, awsEndpoint
	_, _, err = client.ACL().AuthMethodUpdate(m, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func redirected(m *api.ACLAuthMethod) bool {
	endpoint, _ := m.Config["STSEndpoint"].(string)
	return endpoint != ""
}

// Missing returns the first of the auth methods by which tasks cannot log in yet, and
// why; empty if they can log in by all.
func (l ConsulQuery) Missing(ctx context.Context, methods []string) (string, error) {
	q := (&api.QueryOptions{}).WithContext(ctx)
	// To read one that does not exist is an error in the server's log.
	known, _, err := l.Client.ACL().AuthMethodList(q)
	if err != nil {
		return "", fmt.Errorf("list auth methods: %w", err)
	}
	for _, name := range methods {
		if !slices.ContainsFunc(known, func(m *api.ACLAuthMethodListEntry) bool { return m.Name == name }) {
			return name + " does not exist", nil
		}
		m, _, err := l.Client.ACL().AuthMethodRead(name, q)
		switch {
		case err != nil:
			return "", fmt.Errorf("read auth method %s: %w", name, err)
		case m != nil && m.Type == awsIAM && !redirected(m):
			return name + " has no STS endpoint", nil
		}
		rules, _, err := l.Client.ACL().BindingRuleList(name, q)
		if err != nil {
			return "", fmt.Errorf("list binding rules of %s: %w", name, err)
		}
		if len(rules) == 0 {
			return name + " has no binding rule", nil
		}
	}
	return "", nil
}
