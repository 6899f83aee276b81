package cluster

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Store finds a value by its name: an ARN, or an SSM parameter's name.
type Store func(name string) (value string, ok bool)

// Sources are where variables come from besides the container definition.
type Sources struct {
	// Image is the image's ENV, a list of NAME=value.
	Image []string
	// Files has the content of environment files by ARN.
	Files Store
	// Secrets has what Secret looks up.
	Secrets Store
	Agent   Agent
}

// Agent is what the ECS agent shows of a container.
type Agent struct {
	// Host is where metadata and credentials are: network.MetadataIP, or another host with its port.
	Host string
	// EndpointID is the last part of the metadata URIs.
	EndpointID string
	// CredentialsID is empty for a task without a role.
	CredentialsID string
	Region        string
	// Hostname is the task's private DNS name.
	Hostname string
	// ECS is the URL of the ECS API; empty where there is none.
	ECS string
	// Trust reports whether trustFile is there.
	Trust bool
}

// List returns the container's environment in a stable order, as exec takes it. The error is the task's stopped reason:
// nothing of the task may start then.
func List(c taskdef.Container, s Sources) ([]string, error) {
	e := variables{}
	for _, kv := range s.Image {
		name, value, _ := strings.Cut(kv, "=")
		e[name] = value
	}
	if err := e.files(c, s.Files); err != nil {
		const failed = "ResourceInitializationError: failed to download env files"
		return nil, fmt.Errorf("%s: container %s: %w", failed, c.Name, err)
	}
	for _, kv := range c.Environment {
		e[kv.Name] = kv.Value
	}
	for _, secret := range c.Secrets {
		value, err := Secret(secret.ValueFrom, s.Secrets)
		if err != nil {
			const failed = "ResourceInitializationError: unable to pull secrets or registry auth: " +
				"execution resource retrieval failed"
			return nil, fmt.Errorf("%s: container %s, secret %s: %w", failed, c.Name, secret.Name, err)
		}
		e[secret.Name] = value
	}
	e.agent(s.Agent)
	return e.list(), nil
}

// variables are an environment by name. Later writers win, so the order of the writes is the precedence.
type variables map[string]string

// files adds the environment files. The last one comes first, so that the first one wins.
func (e variables) files(c taskdef.Container, store Store) error {
	for _, f := range slices.Backward(c.EnvironmentFiles) {
		text, ok := store(f.Value)
		if !ok {
			return fmt.Errorf("no content for %s; add it to the local environment files", f.Value)
		}
		parsed, err := parseFile(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Value, err)
		}
		for name, value := range parsed {
			e[name] = value
		}
	}
	return nil
}

// agent adds what Fargate's agent sets, over the user's own: there the region is never the user's, on EC2 it would be.
func (e variables) agent(a Agent) {
	base := "http://" + a.Host
	e["ECS_CONTAINER_METADATA_URI_V4"] = base + "/v4/" + a.EndpointID
	e["ECS_CONTAINER_METADATA_URI"] = base + "/v3/" + a.EndpointID
	e["ECS_AGENT_URI"] = base + "/api/" + a.EndpointID
	e["AWS_EXECUTION_ENV"] = "AWS_ECS_FARGATE"
	e["AWS_REGION"] = a.Region
	e["AWS_DEFAULT_REGION"] = a.Region
	e["HOSTNAME"] = a.Hostname
	// On AWS its name would lead there. The user's own goes first, as in the SDKs.
	if e["AWS_ENDPOINT_URL_ECS"] == "" && a.ECS != "" {
		e["AWS_ENDPOINT_URL_ECS"] = a.ECS
	}
	if a.Trust {
		e.trust()
	}
	delete(e, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	fargate := a.Host == network.MetadataIP
	if !fargate {
		// The host's own instance metadata may be in reach, and is not the task's.
		e["AWS_EC2_METADATA_DISABLED"] = "true"
		delete(e, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
	}
	switch uri := iam.RelativeURI(a.CredentialsID); {
	case a.CredentialsID == "":
	case fargate:
		e["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = uri
	default: // the SDKs look for the other one at network.MetadataIP only
		e["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = base + uri
	}
}

// trust makes programs trust the CA of AWS's names besides what they trust already: Go, OpenSSL and curl by the first
// variable, boto3 and the aws command by the second, Node.js by the third. AWS_CA_BUNDLE is not among them: with it the
// SDK for Go refuses an HTTP client of the application's own.
func (e variables) trust() {
	for name, value := range map[string]string{
		// The first two are what Go has without the variable.
		"SSL_CERT_DIR":        "/etc/ssl/certs:/etc/pki/tls/certs:" + trustDir,
		"REQUESTS_CA_BUNDLE":  trustFile,
		"NODE_EXTRA_CA_CERTS": trustFile,
	} {
		if e[name] == "" {
			e[name] = value
		}
	}
}

func (e variables) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// parseFile reads an environment file. A line is NAME=value, split at the first "=" and taken as it is: no quotes, no
// trimming, no expansion. Lines that begin with "#", have no "=" or no name are skipped. Of two lines with one name the
// later wins. The error is about a line of 64 KiB or more.
func parseFile(text string) (map[string]string, error) {
	variables := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	n := 0
	for lines.Scan() {
		n++
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && name != "" && !strings.HasPrefix(name, "#") {
			variables[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("environment file, line %d: %w", n+1, err)
	}
	return variables, nil
}
