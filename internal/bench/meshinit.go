package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/workload"
)

const startRuns = 20

// startSamples are what one way of starting gives.
type startSamples struct {
	own, wall, requests sample
	process, bootstrap  sample
}

// meshInitFigure measures mesh-init's own time: start to exit without the time in which it waited for Consul, AWS or
// the metadata endpoint.
func meshInitFigure(s *fixture) ([]row, error) {
	var rows []row
	for _, login := range []bool{false, true} {
		got, err := s.measureStart(login)
		if err != nil {
			return rows, err
		}
		rows = append(rows, got.rows(login)...)
	}
	return rows, nil
}

func (m startSamples) rows(login bool) []row {
	what, old, goal, requests := "mesh-init, no login", "97", "25", "3"
	if login {
		what, old, goal, requests = "mesh-init, login", "101", "35", "5"
	}
	return []row{
		{what + ": own time", milliseconds, old, goal, m.own, []reference{
			{"process start: version", m.process},
			{"consul connect envoy -bootstrap, own time", m.bootstrap},
		}},
		{what + ": start to exit", milliseconds, "", "", m.wall, []reference{{"process start: version", m.process}}},
		{what + ": Consul requests", count, "", requests, m.requests, nil},
	}
}

// measureStart takes ours, floor and peer in turns, so that all three see the
// same machine. The first turn warms the caches and is not counted.
func (s *fixture) measureStart(login bool) (startSamples, error) {
	var m startSamples
	c, err := s.consul(login)
	if err != nil {
		return m, err
	}
	var aws *cloud
	if login {
		if aws, err = s.newCloud(c); err != nil {
			return m, err
		}
	}
	for turn := range s.harness.repeat(startRuns) + 1 {
		process, err := s.time(nil, s.harness.program, "version")
		if err != nil {
			return m, err
		}
		r, err := s.startOnce(c, aws)
		if err != nil {
			return m, err
		}
		if turn == 0 {
			continue
		}
		m.process.add(milliseconds.of(process))
		m.own.add(milliseconds.of(r.wall - r.waited))
		m.wall.add(milliseconds.of(r.wall))
		m.requests.add(float64(r.requests))
		m.bootstrap.add(milliseconds.of(r.peer))
	}
	return m, nil
}

// started is one run of mesh-init and of its peer.
type started struct {
	wall, waited, peer time.Duration
	requests           int
}

func (s *fixture) startOnce(c *consul, aws *cloud) (started, error) {
	t, err := s.newTask("bench", workload.ContainerMeshInit, "app")
	if err != nil {
		return started{}, err
	}
	env, err := t.env(c.address, c, aws.config(c))
	if err != nil {
		return started{}, err
	}
	if env, err = aws.env(env, t); err != nil {
		return started{}, err
	}
	c.requests.take()
	aws.take()
	var r started
	if r.wall, err = s.time(env, s.harness.program, "mesh-init"); err != nil {
		return r, err
	}
	consulRequests := c.requests.take()
	r.requests = len(consulRequests)
	r.waited = busy(append(append(consulRequests, t.reads.take()...), aws.take()...))

	// The peer, which version 0.6 ran as a part of its work.
	total, err := s.time([]string{"CONSUL_HTTP_TOKEN=" + c.Token}, testkit.Binary("consul"), "connect", "envoy",
		"-bootstrap",
		"-proxy-id", t.proxyID(), "-http-addr", c.address, "-grpc-addr", c.GRPCAddr)
	if err != nil {
		return r, err
	}
	r.peer = total - busy(c.requests.take())
	return r, c.forget(t)
}

// cloud is STS, IAM and the credentials endpoint, with the Consul side of a
// login. A nil cloud is no login.
type cloud struct {
	store       *iam.Store
	role        iam.Role
	sts         string
	credentials string
	requests    *recorder
}

const authMethod = "iam-ecs-service-token"

func (s *fixture) newCloud(c *consul) (*cloud, error) {
	a := &cloud{store: iam.NewStore(), requests: &recorder{}}
	a.role = iam.Role{Name: "bench", Path: "/consul-ecs/", Account: account,
		Tags: map[string]string{"consul.hashicorp.com.service-name": "bench"}}
	a.store.PutRole(a.role)
	sts, err := s.serve("", a.requests.around(iam.New(a.store, region)))
	if err != nil {
		return nil, err
	}
	credentials, err := s.serve("", a.requests.around(iam.Handler(a.store)))
	if err != nil {
		return nil, err
	}
	a.sts, a.credentials = "http://"+sts, "http://"+credentials
	return a, a.createMethod(c, authMethod)
}

// createMethod creates an auth method and its binding rule.
func (a *cloud) createMethod(c *consul, name string) error {
	_, _, err := c.direct.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: map[string]any{
		"STSEndpoint":            a.sts,
		"IAMEndpoint":            a.sts,
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::" + account + ":role/consul-ecs/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags":          []string{"consul.hashicorp.com.service-name"},
	}}, nil)
	if err != nil {
		return fmt.Errorf("create auth method: %w", err)
	}
	_, _, err = c.direct.ACL().BindingRuleCreate(&api.ACLBindingRule{
		AuthMethod: name, BindType: api.BindingRuleBindTypeService,
		BindName: "${entity_tags.consul.hashicorp.com.service-name}",
	}, nil)
	return err
}

func (a *cloud) config(c *consul) object {
	if a == nil {
		return nil
	}
	return a.configFor(c.address, authMethod)
}

// configFor returns the configuration of a login at an address with an auth method.
func (a *cloud) configFor(address, method string) object {
	return object{
		"consulHTTPAddr": address,
		"consulLogin":    object{"enabled": true, "method": method, "stsEndpoint": a.sts},
	}
}

// env adds the credentials of a task.
func (a *cloud) env(env []string, t *task) ([]string, error) {
	if a == nil {
		return env, nil
	}
	id, err := a.store.Issue(a.role.ARN(), t.id, time.Now())
	return append(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI="+a.credentials+iam.RelativeURI(id),
		"AWS_CONFIG_FILE="+filepath.Join(t.dir, "none"), "AWS_SHARED_CREDENTIALS_FILE="+
			filepath.Join(t.dir, "none")), err
}

func (a *cloud) take() []exchange {
	if a == nil {
		return nil
	}
	return a.requests.take()
}
