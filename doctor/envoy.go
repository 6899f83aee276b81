package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/envoy"
)

// admin returns Envoy's answer to a GET of a path of its admin interface.
type admin = func(ctx context.Context, path string) ([]byte, error)

// Envoy returns the checks of the task's Envoy, of which ask reads the admin interface.
func Envoy(ask admin) []Check {
	return []Check{
		{"Envoy", func(ctx context.Context) (string, error) { return envoyState(ctx, ask) }},
		{"Envoy configuration", func(ctx context.Context) (string, error) { return envoyUpdates(ctx, ask) }},
		{"Envoy certificates", func(ctx context.Context) (string, error) { return envoyCertificates(ctx, ask) }},
		{"Envoy upstreams", func(ctx context.Context) (string, error) { return envoyUpstreams(ctx, ask) }},
	}
}

// read decodes an answer. The caller has reported already that there is none: by envoyState.
func read(ctx context.Context, ask admin, path string, into any) error {
	text, err := ask(ctx, path)
	if err != nil {
		return Skipf("envoy's admin interface does not answer")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s of Envoy: %w", path, err)
	}
	return nil
}

func envoyState(ctx context.Context, ask admin) (string, error) {
	text, err := ask(ctx, "/server_info")
	if err != nil {
		return "", fmt.Errorf("envoy's admin interface does not answer: %w", err)
	}
	var info struct{ State, Version string }
	if err := json.Unmarshal(text, &info); err != nil {
		return "", fmt.Errorf("read /server_info of Envoy: %w", err)
	}
	if info.State != "LIVE" {
		return "", fmt.Errorf("envoy is not live: its state is %s", info.State)
	}
	version := info.Version
	if parts := strings.Split(version, "/"); len(parts) > 1 {
		version = parts[1]
	}
	return "live, version " + version, nil
}

// envoyUpdates looks for a missing connection to the control plane, rejected updates and missing listeners.
func envoyUpdates(ctx context.Context, ask admin) (string, error) {
	text, err := ask(ctx, "/stats?filter=control_plane.connected_state|update_rejected")
	if err != nil {
		return "", Skipf("envoy's admin interface does not answer")
	}
	stats, _ := envoy.ParseStats(text) // what is not a number is none of the two
	if connected, known := stats["control_plane.connected_state"]; known && connected == 0 {
		return "", errors.New("envoy has no stream to its control plane")
	}
	var rejected []string
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		if strings.HasSuffix(name, "update_rejected") && stats[name] > 0 {
			rejected = append(rejected, fmt.Sprintf("%s %d", name, stats[name]))
		}
	}
	var dump struct {
		Configs []struct {
			Name       string
			ErrorState struct{ Details string } `json:"error_state"`
		}
	}
	var listeners struct {
		Statuses []struct{ Name string } `json:"listener_statuses"`
	}
	if err := read(ctx, ask, "/config_dump?resource=dynamic_listeners", &dump); err == nil {
		for _, c := range dump.Configs {
			if c.ErrorState.Details != "" {
				return "", fmt.Errorf("envoy rejected resources: listener %s: %s", c.Name,
					oneLine(c.ErrorState.Details))
			}
		}
	}
	if len(rejected) > 0 {
		return "", fmt.Errorf("envoy rejected resources: %s", strings.Join(rejected, ", "))
	}
	if err := read(ctx, ask, "/listeners?format=json", &listeners); err != nil {
		return "", err
	}
	if len(listeners.Statuses) == 0 {
		return "", errors.New("envoy has no listener: it got no configuration")
	}
	return fmt.Sprintf("%d listeners, no update rejected", len(listeners.Statuses)), nil
}

func envoyCertificates(ctx context.Context, ask admin) (string, error) {
	type certificate struct {
		Days daysLeft `json:"days_until_expiration"`
	}
	var answer struct {
		Certificates []struct {
			CA    []certificate `json:"ca_cert"`
			Chain []certificate `json:"cert_chain"`
		}
	}
	if err := read(ctx, ask, "/certs", &answer); err != nil {
		return "", err
	}
	least := daysLeft(math.MaxInt)
	for _, c := range answer.Certificates {
		for _, one := range slices.Concat(c.CA, c.Chain) {
			least = min(least, one.Days)
		}
	}
	switch {
	case len(answer.Certificates) == 0:
		return "", errors.New("envoy has no certificate: it got no configuration")
	case least <= 0:
		return "", errors.New("a certificate of Envoy has expired")
	}
	return fmt.Sprintf("valid for %d days", least), nil
}

// daysLeft is a number that Envoy writes as a string.
type daysLeft int

// UnmarshalJSON implements json.Unmarshaler.
func (d *daysLeft) UnmarshalJSON(text []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(text), `"`))
	*d = daysLeft(n)
	return err
}

// envoyUpstreams looks for upstreams without a healthy instance. Those of Consul have its trust domain in their names.
func envoyUpstreams(ctx context.Context, ask admin) (string, error) {
	var answer struct {
		Clusters []struct {
			Name  string
			Hosts []struct {
				Health map[string]any `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := read(ctx, ask, "/clusters?format=json", &answer); err != nil {
		return "", err
	}
	var empty []string
	upstreams := 0
	for _, c := range answer.Clusters {
		if !strings.HasSuffix(c.Name, ".consul") {
			continue
		}
		upstreams++
		if !slices.ContainsFunc(c.Hosts, func(h struct {
			Health map[string]any `json:"health_status"`
		}) bool {
			return len(h.Health) == 1 && h.Health["eds_health_status"] == "HEALTHY"
		}) {
			service, _, _ := strings.Cut(c.Name, ".")
			empty = append(empty, fmt.Sprintf("%s (%d instances)", service, len(c.Hosts)))
		}
	}
	switch {
	case len(empty) > 0:
		return "", fmt.Errorf("upstreams without a healthy instance: %s", strings.Join(empty, ", "))
	case upstreams == 0:
		return "none", nil
	}
	return fmt.Sprintf("%d, each with a healthy instance", upstreams), nil
}
