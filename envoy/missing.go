package envoy

import (
	"context"
	"slices"
	"strings"
	"time"
)

// answerTime bounds one answer of the agent. It has none for a proxy whose
// certificates, intentions or mesh configuration it does not know yet.
const answerTime = 2 * time.Second

// Missing compares what the Envoy of that bootstrap file has with what an agent whose xDS server
// is at address (host:port, without TLS) would give it now: an agent takes away from Envoy
// what it does not know. missing describes the first things that the agent lacks, or why
// it does not answer; empty means that Envoy loses nothing. The error is Envoy's: what it
// has is not known.
func Missing(ctx context.Context, bootstrap, address string) (missing string, err error) {
	p, err := ReadBootstrap(bootstrap)
	if err != nil {
		return "", err
	}
	return lacks(ctx, p, address)
}

// lacks is Missing for what a bootstrap shows.
func lacks(ctx context.Context, p Proxy, address string) (missing string, err error) {
	present, err := readResources(ctx, p.Admin)
	if err != nil {
		return "", err
	}
	version, err := readVersion(ctx, p.Admin)
	if err != nil {
		return "", err
	}
	client := newXDSClient(address, p, version)
	defer client.close()
	// An agent without any endpoint sends no endpoint response, so they come last.
	for _, kind := range []string{listenerType, clusterType, endpointType} {
		if len(present[kind]) == 0 {
			continue
		}
		names, err := client.names(ctx, kind, present[kind])
		if err != nil {
			return err.Error(), ctx.Err()
		}
		rest := slices.DeleteFunc(present[kind], func(name string) bool { return slices.Contains(names, name) })
		if len(rest) > 0 {
			return shortName(kind) + " " + strings.Join(rest, ", "), nil
		}
	}
	return "", nil
}
