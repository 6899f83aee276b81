package registrar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// The passive health check of a service without outlierDetection, and what holds for
// the fields that the object leaves out.
const (
	defaultInterval                = 10 * time.Second
	defaultMaxFailures             = 5
	defaultEnforcingGatewayFailure = 100
	defaultMaxEjectionPercent      = 50
)

// errEntryChanged is the loss of a race for a configuration entry; its class is Retry.
var errEntryChanged = errors.New("the entry was changed at the same time")

// EnsureResilience gives the service-defaults of the workload the passive health check
// of its configuration, if they have none: any other setting stays, and so does the
// check that an operator or another task has set. It is the caller who looks at
// r.Enabled. unsupported are the settings of the configuration that the servers do not
// know and do not have then. The token needs service:write for the service. It is safe
// to repeat; the error of a lost race is one of those that are worth it.
func EnsureResilience(
	ctx context.Context, client *api.Client, token string, w workload.Workload, r config.NetworkResilience,
) (unsupported []string, err error) {
	what := fmt.Sprintf("set passive health check in service-defaults %q", w.Name)
	entries := client.ConfigEntries()
	entry, index, err := serviceDefaults(entries, w, query(ctx, token, w))
	if err != nil {
		return nil, refusal(what, w.Name, err)
	}
	if entry.UpstreamConfig == nil {
		entry.UpstreamConfig = &api.UpstreamConfiguration{}
	}
	if entry.UpstreamConfig.Defaults == nil {
		entry.UpstreamConfig.Defaults = &api.UpstreamConfig{}
	}
	if entry.UpstreamConfig.Defaults.PassiveHealthCheck != nil {
		return nil, nil
	}
	check := passiveHealthCheck(r.OutlierDetection)
	entry.UpstreamConfig.Defaults.PassiveHealthCheck = check
	options := writeOptions(ctx, token, w)
	written, _, err := entries.CAS(entry, index, options)
	if unknownCheckField(err) {
		unsupported = keepKnown(check, r.OutlierDetection)
		written, _, err = entries.CAS(entry, index, options)
	}
	switch {
	case err != nil:
		return nil, refusal(what, w.Name, err)
	case !written:
		return nil, fmt.Errorf("%s: %w", what, errEntryChanged)
	}
	return unsupported, nil
}

// serviceDefaults reads the entry and its index, or makes a new one with index 0, which
// lets Consul write it only if there is still none.
func serviceDefaults(
	entries *api.ConfigEntries, w workload.Workload, q *api.QueryOptions,
) (*api.ServiceConfigEntry, uint64, error) {
	found, _, err := entries.Get(api.ServiceDefaults, w.Name, q)
	if consulutil.Classify(err) == retry.Gone {
		return &api.ServiceConfigEntry{Kind: api.ServiceDefaults, Name: w.Name, Namespace: w.Namespace,
			Partition: w.Partition}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	entry, ok := found.(*api.ServiceConfigEntry)
	if !ok {
		return nil, 0, fmt.Errorf("got a configuration entry of kind %s", found.GetKind())
	}
	return entry, entry.ModifyIndex, nil
}

func passiveHealthCheck(o *config.OutlierDetection) *api.PassiveHealthCheck {
	check := &api.PassiveHealthCheck{
		EnforcingConsecutiveGatewayFailure: new(uint32(defaultEnforcingGatewayFailure)),
		MaxEjectionPercent:                 new(uint32(defaultMaxEjectionPercent)),
	}
	if o == nil {
		check.Interval, check.MaxFailures = defaultInterval, defaultMaxFailures
		return check
	}
	if o.Interval != nil {
		check.Interval = time.Duration(*o.Interval)
	}
	if o.MaxFailures != nil {
		check.MaxFailures = uint32(*o.MaxFailures)
	}
	for _, f := range []struct {
		to   **uint32
		from *int
	}{
		{&check.EnforcingConsecutive5xx, o.EnforcingConsecutive5xx},
		{&check.Consecutive5xx, o.Consecutive5xx},
		{&check.ConsecutiveGatewayFailure, o.ConsecutiveGatewayFailure},
		{&check.EnforcingConsecutiveGatewayFailure, o.EnforcingConsecutiveGatewayFailure},
		{&check.MaxEjectionPercent, o.MaxEjectionPercent},
	} {
		if f.from != nil {
			*f.to = new(uint32(*f.from))
		}
	}
	return check
}

// unknownCheckField reports whether the servers refused the entry because they are older
// than a field of the check.
func unknownCheckField(err error) bool {
	reason := consulutil.Reason(err)
	return consulutil.Status(err) == http.StatusBadRequest && strings.Contains(reason, "invalid config key") &&
		strings.Contains(reason, "PassiveHealthCheck")
}

// keepKnown removes the fields that Consul 1.20 does not have, and returns those of them
// that are configured.
func keepKnown(check *api.PassiveHealthCheck, o *config.OutlierDetection) []string {
	check.Consecutive5xx, check.ConsecutiveGatewayFailure, check.EnforcingConsecutiveGatewayFailure = nil, nil, nil
	if o == nil {
		return nil
	}
	var configured []string
	for _, f := range []struct {
		name  string
		value *int
	}{
		{"consecutive5xx", o.Consecutive5xx},
		{"consecutiveGatewayFailure", o.ConsecutiveGatewayFailure},
		{"enforcingConsecutiveGatewayFailure", o.EnforcingConsecutiveGatewayFailure},
	} {
		if f.value != nil {
			configured = append(configured, f.name)
		}
	}
	return configured
}
