package controlplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// idle launches nothing.
type idle struct{}

// Launch implements controlplane.Launcher.
func (idle) Launch(Launch) {}

// Stop implements controlplane.Launcher.
func (idle) Stop(_, _, _ string) {}

// Services that live for long have had many deployments, deleted services and
// client tokens: none of them is held for ever.
func TestEndedDeploymentsServicesAndTokensAreRemoved(t *testing.T) {
	t.Parallel()
	a := shapes.Account{Region: "us-east-1", ID: "123456789012"}
	s := New(Options{Account: a, Launcher: idle{}})
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	call := func() shapes.Call { return shapes.Call{Now: now, Principal: "me"} }
	document := `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
	"memory": "512",
		"containerDefinitions": [{"name": "app", "image": "app:1"}]}`
	if _, err := s.RegisterTaskDefinition(call(),
		shapes.RegisterTaskDefinitionInput{Document: []byte(document)}); err != nil {
		t.Fatal(err)
	}
	none := 0
	for i := range 2 {
		if _, err := s.CreateService(call(), shapes.ServiceInput{
			ServiceName: fmt.Sprint("s", i), TaskDefinition: "web", DesiredCount: &none, LaunchType: "FARGATE",
			ClientToken: fmt.Sprint(i),
			NetworkConfiguration: &shapes.NetworkConfiguration{
				AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		if _, err := s.UpdateService(call(), shapes.ServiceInput{Service: "s0", ForceNewDeployment: true}); err != nil {
			t.Fatal(err)
		}
		s.ReconcileServices(now)
	}
	if v := s.state.services[a.Service("default", "s0")]; len(v.Deployments) != 1 {
		t.Errorf("of 51 deployments %d are held", len(v.Deployments))
	}
	if _, err := s.DeleteService(call(), shapes.DeleteServiceInput{Service: "s1"}); err != nil {
		t.Fatal(err)
	}
	s.ReconcileServices(now)
	for _, want := range []struct {
		after            time.Duration
		services, tokens int
	}{{0, 2, 2}, {time.Hour - 1, 2, 2}, {1, 1, 2}, {23 * time.Hour, 1, 0}} {
		now = now.Add(want.after)
		s.ReconcileServices(now)
		if len(s.state.services) != want.services || len(s.state.tokens) != want.tokens {
			t.Errorf("after %s more: %d services, %d tokens", want.after, len(s.state.services), len(s.state.tokens))
		}
	}
}
