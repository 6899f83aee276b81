package command

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// withConsulDNS has web call api at its virtual address, by name, with a lookup for each
// request, also while the only server is frozen and after it was down. The container names asks
// the first name server of the task, or as programs do.
const withConsulDNS = webAndAPI + `
  - traffic: {task: web, port: 8080, rate: 10}
  - await: {requests: 20, within: 60s}
  - get: {task: web, url: "http://127.0.0.1:7071/udp/api.virtual.consul.", has: ["NOERROR 240."]}
  - get: {task: web, url: "http://127.0.0.1:7071/tcp/api.virtual.consul.", has: ["NOERROR 240."]}
  - get: {task: web, url: "http://127.0.0.1:7071/udp/api.service.consul.", has: ["NOERROR 10.42."]}
  - get: {task: web, url: "http://127.0.0.1:7071/tcp/api.service.consul.", has: ["NOERROR 10.42."]}
  - get: {task: web, url: "http://127.0.0.1:7071/udp/no-such.service.consul.", has: [NXDOMAIN]}
  - get: {task: web, url: "http://127.0.0.1:7071/udp/api-1.agentless.local.", has: [REFUSED]}
  - get: {task: web, url: "http://127.0.0.1:7071/any/api-1.agentless.local.", has: ["10.42."]}
  - faults:
      - {for: 8s, server: frozen}
  - pause: 1s
  - get: {task: web, url: "http://127.0.0.1:7071/udp/api.virtual.consul.", has: ["NOERROR 240."]}
  - get: {task: web, url: "http://127.0.0.1:7071/tcp/api.service.consul.", has: ["NOERROR 10.42."]}
  - get: {task: web, url: "http://127.0.0.1:7071/udp/new.service.consul.", has: [SERVFAIL]}
  - get: {task: web, url: "http://127.0.0.1:7071/any/api-1.agentless.local.", has: ["10.42."]}
  - await: {requests: 20, within: 60s}
  - await: {faultsOver: true, within: 60s}
  - faults:
      - {for: 4s, server: down}
  - await: {faultsOver: true, within: 60s}
  - await: {requests: 20, within: 60s}
  - endTraffic: {name: by name, failed: 0}
  - stop: [web, api-1]
  - stop: [controller]

checks:
  minRequests: 60
  noServices: [web, web-sidecar-proxy, api, api-sidecar-proxy]
  cleanExits: true
`

// Envoy alone, on EC2, where the containers of a task share resolv.conf.
func TestEndToEndConsulDNS(t *testing.T) {
	t.Parallel()
	dir := deriveTransparent(t, withConsulDNS, `\"consulDNS\":{\"enabled\":true},`, "http://api.virtual.consul:9090/",
		"      /hello: ${bin}/hello", "      /hello: ${bin}/hello\n  example/names:1:\n    programs:\n      /names: ${names}",
		`"containerDefinitions": [
    {
      "name": "consul-ecs-mesh-init"`, `"containerDefinitions": [
    {
      "name": "names", "image": "example/names:1", "essential": false, "entryPoint": ["/names"]
    },
    {
      "name": "consul-ecs-mesh-init"`)
	code, report, _ := runReport(t, append(programs(t), "-var", "names="+os.Args[0]), dir)
	if code != 0 || report.Failed != 0 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v, want no failure", code, report)
	}
}

// names answers GET /NETWORK/NAME with what a lookup of the name gives until TERM: over udp or
// tcp with the answer of 127.0.0.1, over any as other programs look up names.
func names() int {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{network}/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, lookup(r.Context(), r.PathValue("network"), r.PathValue("name")))
	})
	server := &http.Server{Addr: "127.0.0.1:7071", Handler: mux}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// lookup returns the result of one lookup, in words.
func lookup(ctx context.Context, network, name string) string {
	if network == "any" {
		addresses, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, name)
		return fmt.Sprint(addresses, err)
	}
	client := dns.Client{Net: network, Timeout: 5 * time.Second}
	answer, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(name, dns.TypeA), "127.0.0.1:53")
	if err != nil {
		return err.Error()
	}
	words := []string{dns.RcodeToString[answer.Rcode]}
	for _, rr := range answer.Answer {
		if a, ok := rr.(*dns.A); ok {
			words = append(words, a.A.String())
		}
	}
	return strings.Join(words, " ")
}
