package controlplane

import (
	"cmp"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// accountPage is how many settings or capacity providers a page has at most.
const accountPage = 10

// DescribeCapacityProviders shows Fargate's capacity providers.
func (a *clusterAPI) DescribeCapacityProviders(call shapes.Call,
	in shapes.DescribeCapacityProvidersInput) (shapes.DescribeCapacityProvidersOutput, error) {
	out := shapes.DescribeCapacityProvidersOutput{
		CapacityProviders: []shapes.CapacityProvider{}, Failures: []shapes.Failure{},
	}
	if err := cmp.Or(atMost("capacityProviders", len(in.CapacityProviders), MaxDescribed),
		enum("include", in.Include, "TAGS")); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	known := Fargate()
	if in.Cluster != "" {
		c, err := a.state.cluster(in.Cluster)
		if err != nil {
			return out, err
		}
		known = slices.Sorted(slices.Values(c.providers))
	}
	var wanted []string
	for _, ref := range in.CapacityProviders {
		if r, err := a.state.account.Parse(ref); err == nil && r.Kind == "capacity-provider" {
			ref = r.Name
		}
		if !slices.Contains(known, ref) {
			out.Failures = append(out.Failures,
				shapes.Failure{ARN: a.state.account.CapacityProvider(ref), Reason: shapes.Missing})
		}
		wanted = append(wanted, ref)
	}
	listed := func(name string) bool { return len(wanted) == 0 || slices.Contains(wanted, name) }
	names, next, err := accountPages(known, listed, in.PageInput, "capacity providers "+in.Cluster, call, itself)
	for _, name := range names {
		out.CapacityProviders = append(out.CapacityProviders, shapes.CapacityProvider{
			ARN: a.state.account.CapacityProvider(name), Name: name, Status: shapes.Active, Tags: []shapes.Tag{},
			Type: name,
		})
	}
	out.NextToken = next
	return out, err
}

// settings returns AWS's defaults of the account's settings, sorted by name.
func settings() []shapes.Setting {
	return []shapes.Setting{
		{Name: "awsvpcTrunking", Value: "disabled"},
		{Name: "containerInsights", Value: "disabled"},
		{Name: "containerInstanceLongArnFormat", Value: "enabled"},
		{Name: "defaultLogDriverMode", Value: "non-blocking"},
		{Name: "fargateEventWindows", Value: "disabled"},
		{Name: "fargateFIPSMode", Value: "disabled"},
		{Name: "fargateTaskRetirementWaitPeriod", Value: "7"},
		{Name: "guardDutyActivate", Value: "off", Type: "aws_managed"},
		{Name: "serviceLongArnFormat", Value: "enabled"},
		{Name: "tagResourceAuthorization", Value: "on"},
		{Name: "taskLongArnFormat", Value: "enabled"},
	}
}

// ListAccountSettings lists the effective settings: the defaults, as none is set.
func (a *clusterAPI) ListAccountSettings(call shapes.Call,
	in shapes.ListAccountSettingsInput) (shapes.ListAccountSettingsOutput, error) {
	out := shapes.ListAccountSettingsOutput{Settings: []shapes.Setting{}}
	name := func(s shapes.Setting) string { return s.Name }
	all := settings()
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if err := enum("name", []string{in.Name}, names...); err != nil {
		return out, err
	}
	if in.Value != "" && in.Name == "" {
		return out, shapes.Invalid("A value requires a name.")
	}
	listed := func(s shapes.Setting) bool {
		return in.EffectiveSettings && (in.Name == "" || s.Name == in.Name) && (in.Value == "" || s.Value == in.Value)
	}
	page, scope := in.PageInput, in
	scope.PageInput = shapes.PageInput{}
	found, next, err := accountPages(all, listed, page, fingerprint(scope), call, name)
	for _, s := range found {
		s.PrincipalARN = cmp.Or(in.PrincipalARN, a.state.account.Root())
		s.Type = cmp.Or(s.Type, "user")
		out.Settings = append(out.Settings, s)
	}
	out.NextToken = next
	return out, err
}

// accountPages returns a page of at most accountPage items.
func accountPages[T any](items []T, keep func(T) bool, in shapes.PageInput, scope string, call shapes.Call,
	key func(T) string) ([]T, string, error) {
	if in.MaxResults == nil {
		in.MaxResults = new(accountPage)
	}
	if *in.MaxResults > accountPage {
		return nil, "", shapes.Invalid("maxResults must be between 1 and %d.", accountPage)
	}
	return Page(items, keep, in, scope, call.Now, false, key)
}
