package command

import (
	"testing"
)

// Neither an API gateway, which is replaced under traffic from outside the mesh, nor a
// terminating gateway loses a request, and nothing of them remains in Consul.
func TestEndToEndGatewaysWithoutAgents(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("agentless-gateways"))
	if code != 0 || report.Answered < 100 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v; want nothing lost of 100 requests and more", code, report)
	}
	wantEvents(t, events, []event{
		{Kind: "check", Task: "ingress-1", Text: "Consul dataplane readiness (api-gateway): critical"},
		{Kind: "check", Task: "ingress-1", Text: "Consul dataplane readiness (api-gateway): gone"},
		{Kind: "status", Task: "ingress-1", Container: "sidecar-proxy", Text: "STOPPED (exit code 0)"},
		{Kind: "cleared", Task: "ingress-1", Text: "nothing left of the task"},
		{Kind: "cleared", Task: "ingress-2", Text: "nothing left of the task"},
		{Kind: "check", Task: "terminating", Text: "Consul dataplane readiness (terminating-gateway): gone"},
		{Kind: "cleared", Task: "terminating", Text: "nothing left of the task"},
	})
}

// A service is reached in another datacenter through the mesh gateways of both, of which
// one is replaced meanwhile.
func TestEndToEndTwoDatacenters(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("two-datacenters"))
	if code != 0 || report.Answered < 80 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v; want nothing lost of 80 requests and more", code, report)
	}
	wantEvents(t, events, []event{
		{Kind: "check", Task: "gateway-1", Text: "Consul dataplane readiness (mesh-gateway): gone"},
		{Kind: "cleared", Task: "gateway-1", Text: "nothing left of the task"},
		{Kind: "cleared", Task: "gateway-1b", Text: "nothing left of the task"},
		{Kind: "get", Task: "dc2", Text: "GET http://127.0.0.1:8500/v1/catalog/services, lacks stock, mesh-gateway"},
	})
}
