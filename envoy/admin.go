package envoy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answerLimit bounds what is read of an answer.
const answerLimit = 16 << 20

// Ask returns the answer of the Envoy with that admin address (host:port). It obeys its
// context and has no own timeout.
func Ask(ctx context.Context, method, address, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	// Not the default transport: a proxy from the environment must not
	// come between, nor an idle connection stay open.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answered %s: %.200s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err == nil && len(body) > answerLimit {
		err = fmt.Errorf("envoy's answer has more than %d bytes", answerLimit)
	}
	return body, err
}

// Requests for names of what Envoy has by xDS, and for its version.
const (
	listenersPath = "/config_dump?resource=dynamic_listeners&mask=name,active_state.version_info"
	clustersPath  = "/config_dump?resource=dynamic_active_clusters&mask=cluster.name,cluster.type,cluster.eds_cluster_config.service_name"
	versionPath   = "/server_info"
)

// resources are the names of what an Envoy has by xDS, by type URL.
type resources map[string][]string

// readResources asks the Envoy with that admin address.
func readResources(ctx context.Context, address string) (resources, error) {
	var listeners struct {
		Configs []struct {
			Name   string           `json:"name"`
			Active *json.RawMessage `json:"active_state"` // nil in one that drains
		} `json:"configs"`
	}
	if err := askJSON(ctx, address, listenersPath, &listeners); err != nil {
		return nil, err
	}
	var clusters struct {
		Configs []struct {
			Cluster struct {
				Name string `json:"name"`
				Type string `json:"type"`
				EDS  struct {
					Name string `json:"service_name"`
				} `json:"eds_cluster_config"`
			} `json:"cluster"`
		} `json:"configs"`
	}
	if err := askJSON(ctx, address, clustersPath, &clusters); err != nil {
		return nil, err
	}
	r := resources{}
	for _, l := range listeners.Configs {
		if l.Active != nil {
			r[listenerType] = append(r[listenerType], l.Name)
		}
	}
	for _, c := range clusters.Configs {
		r[clusterType] = append(r[clusterType], c.Cluster.Name)
		if c.Cluster.Type == "EDS" {
			r[endpointType] = append(r[endpointType], cmp.Or(c.Cluster.EDS.Name, c.Cluster.Name))
		}
	}
	return r, nil
}

// readVersion asks the Envoy with that admin address for its version, such as 1.34.1.
func readVersion(ctx context.Context, address string) (version string, err error) {
	var info struct {
		// Version is revision/version/status/type/TLS library.
		Version string `json:"version"`
	}
	err = askJSON(ctx, address, versionPath, &info)
	if parts := strings.Split(info.Version, "/"); len(parts) > 1 {
		version = parts[1]
	}
	return version, err
}

func askJSON(ctx context.Context, address, path string, out any) error {
	text, err := Ask(ctx, http.MethodGet, address, path)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("read %s from envoy: %w", path, err)
	}
	return nil
}
