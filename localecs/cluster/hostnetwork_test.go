package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// whoAmI asks metadata, credentials and STS by the SDK's default chain, as any application would, and stays.
func whoAmI(stsURL string) int {
	ctx := context.Background()
	answer, err := http.Get(os.Getenv("ECS_CONTAINER_METADATA_URI_V4") + "/task")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	answer.Body.Close()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	credentials, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	client := sts.NewFromConfig(cfg, func(o *sts.Options) { o.BaseEndpoint = &stsURL })
	me, err := client.GetCallerIdentity(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(answer.StatusCode, credentials.Source, aws.ToString(me.Arn))
	return run("0s", "0")
}

// listening gives a container a port mapping.
func listening(c taskdef.Container, number int) taskdef.Container {
	c.PortMappings = []taskdef.PortMapping{{ContainerPort: &number}}
	return c
}

// onHost makes a fixture of newTools with host networking. log gets the warnings.
func onHost(t *testing.T, log *bytes.Buffer) *fixture {
	t.Helper()
	return newTools(t, func(o *Options) {
		o.Network, o.Subnet = network.Host, "127.42.0.0/24"
		if log != nil {
			o.Log = hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Warn})
		}
	})
}

// What tasks have and what they lose when they share the host's network. It has no right to change that network.
func TestHostNetwork(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	t.Run("NeedsNoNetAdmin", hostNeedsNoNetAdmin)
	t.Run("MetadataAndCredentials", hostMetadataAndCredentials)
	t.Run("OrderHealthAndStop", hostOrderHealthAndStop)
	t.Run("TasksSideBySide", hostTasksSideBySide)
	t.Run("PortsInUse", hostPortsInUse)
	t.Run("ServicePortInUse", hostServicePortInUse)
	t.Run("WithoutDNS", hostWithoutDNS)
	t.Run("Acts", hostActs)
	t.Run("NothingIsLeft", hostNothingIsLeft)
}

func hostNeedsNoNetAdmin(t *testing.T) {
	have, err := host.Effective()
	if err != nil || len(host.MissingCaps(have, host.NetAdmin())) != 1 {
		t.Fatalf("this test proves nothing: capabilities %x, %v", have, err)
	}
	_, err = network.New(network.Options{})
	var missing *host.MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "-network host") {
		t.Errorf("awsvpc without CAP_NET_ADMIN: %v; want the way round", err)
	}
}

func hostMetadataAndCredentials(t *testing.T) {
	w := onHost(t, nil)
	s := w.startTask(t, withRole, printing("a"), helper("b", "aws", w.AWSEndpoint()))
	env := s.environment("a")
	s.wantLines("b", "200 CredentialsEndpointProvider arn:aws:sts::123456789012:assumed-role/web/"+s.ID())
	testkit.Equal(t, "metadata URI", env["ECS_CONTAINER_METADATA_URI_V4"], s.base("a"))
	for want, uri := range map[string]string{
		"http://127.0.0.1:": s.base("a"), "http://" + s.resources.host + "/api/": env["ECS_AGENT_URI"],
	} {
		if !strings.HasPrefix(uri, want) {
			t.Errorf("%s, want %s", uri, want)
		}
	}
	if _, ok := env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]; ok || env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] != s.credentialsURL() {
		t.Errorf("credentials: environment %v", env)
	}
	own := s.object(env["ECS_CONTAINER_METADATA_URI_V4"])
	testkit.Equal(t, "name", own["Name"], any("a"))
	ip := own["Networks"].([]any)[0].(map[string]any)["IPv4Addresses"].([]any)[0]
	testkit.Equal(t, "address", ip, any("127.42.0.4"))
	testkit.Equal(t, "address of the task", s.IP(), "127.42.0.4")
	if code, _ := s.request("GET", env["ECS_AGENT_URI"]+"/task-protection/v1/state", ""); code != 200 {
		t.Errorf("task protection: %d", code)
	}
}

func hostOrderHealthAndStop(t *testing.T) {
	s := onHost(t, nil).startTask(t, nil,
		checked(helper("a", "run", "0s", "0"), 3, "CMD", "/bin/helper", "probe", "PPF"),
		after(helper("b", "run", "300ms", "7"), "a", "HEALTHY"))
	s.until("RUNNING", running)
	if a, b := s.container("a"), s.container("b"); b.StartedAt.Before(a.Health.Since) {
		t.Errorf("b started at %s, a was healthy at %s", b.StartedAt, a.Health.Since)
	}
	s.until("a UNHEALTHY", func(v scheduler.View) bool { return v.Containers[0].Health.Status == scheduler.HealthUnhealthy })
	s.await("a", "b").end().stopped()
	if s.signalled("a").Before(s.container("b").FinishedAt) {
		t.Errorf("a was signalled at %s, b ended at %s", s.signalled("a"), s.container("b").FinishedAt)
	}
	testkit.Equal(t, "exit codes of a and b", [2]int{s.code("a"), s.code("b")}, [2]int{0, 7})
}

// hostTasksSideBySide checks that tasks have their own addresses and ports, and find each other by name.
func hostTasksSideBySide(t *testing.T) {
	w := onHost(t, nil)
	first := w.startTask(t, named("first"), listening(helper("a", "net", "listen=:9001"), 9001), printing("b"))
	first.wantLines("a", "listen=:9001 ok")
	second := w.startTask(t, named("second"), listening(helper("c", "net",
		"listen=:9002", "dial="+first.IP()+":9001", "dial=first.test.local:9001", "dial="+first.environment("b")["HOSTNAME"]+":9001"), 9002))
	first.until("RUNNING", running)
	const heard = " ok hello from [::]:9001 true"
	second.wantLines("c", "listen=:9002 ok", "dial=127.42.0.4:9001"+heard, "dial=first.test.local:9001"+heard, "dial=ip-127-42-0-4.ec2.internal:9001"+heard)
	if first.resources.host == second.resources.host {
		t.Errorf("both tasks' metadata is at %s", first.resources.host)
	}
	// By the simulator's own ways, too.
	vpc := w.Fabric().Infra().DialContext
	for _, dial := range []func(context.Context, string, string) (net.Conn, error){vpc, second.Dial} {
		c, err := dial(t.Context(), "tcp", first.IP()+":9001")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func hostPortsInUse(t *testing.T) {
	w := onHost(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:9009")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := w.startTask(t, named("first"), listening(helper("a", "net", "listen=0.0.0.0:9001"), 9001))
	def := &taskdef.TaskDefinition{Family: "second", ContainerDefinitions: []taskdef.Container{
		listening(helper("b", "run", "0s", "0"), 9001), listening(helper("c", "run", "0s", "0"), 9009), listening(helper("d", "run", "0s", "0"), 9003),
	}}
	const want = "port 9001/tcp of container b of task second is not available: container a of task first has it\n" +
		"port 9009/tcp of container c of task second is not available: process N (cluster.test) that listens on 127.0.0.1:9009 has it\n" +
		"with host networking all tasks share the ports of this host: stop what has it first, or use another containerPort"
	_, err = w.Run("second", def)
	testkit.Equal(t, "error", withoutPID(err), want)
	first.await("a").end().stopped()
	l.Close()
	// Whatever a refused task and a stopped one had is free again.
	again := w.startTask(t, named("again"), listening(helper("a", "net", "listen=0.0.0.0:9001"), 9001),
		listening(helper("c", "net", "listen=0.0.0.0:9009"), 9009), listening(helper("d", "net", "listen=0.0.0.0:9003"), 9003))
	again.wantLines("a", "listen=0.0.0.0:9001 ok")
	again.wantLines("d", "listen=0.0.0.0:9003 ok")
}

func hostServicePortInUse(t *testing.T) {
	w := onHost(t, nil)
	l, err := net.Listen("tcp", "127.42.0.254:8500")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = w.StartService(t.Context(), Service{
		Name: "consul-server", Image: "tools", Args: []string{"/bin/helper", "block"}, Address: "127.42.0.254", Ports: []network.Port{{Number: 8500}},
	})
	const want = "port 127.42.0.254:8500/tcp of consul-server is not available: process N (cluster.test) that listens on 127.42.0.254:8500 has it\n" +
		"with host networking all tasks share the ports of this host: stop what has it; if that is another localecs, use another subnet"
	testkit.Equal(t, "error", withoutPID(err), want)
}

// withoutPID returns an error's text with N for the process that has a port.
func withoutPID(err error) string {
	return regexp.MustCompile(`process \d+`).ReplaceAllString(fmt.Sprint(err), "process N")
}

// hostWithoutDNS checks that all but the names works when another program has the DNS port, and that this is logged.
func hostWithoutDNS(t *testing.T) {
	const warning = "task names do not resolve: error=\"listen for DNS: listen udp 127.42.0.2:53: bind: address already in use\""
	for _, taken := range []bool{false, true} {
		if taken {
			c, err := net.ListenPacket("udp", "127.42.0.2:53")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		var log bytes.Buffer
		w := onHost(t, &log)
		if got := strings.Contains(log.String(), warning); got != taken {
			t.Errorf("DNS port taken %t, warnings:\n%s", taken, &log)
		}
		w.startTask(t, nil, helper("a", "run", "0s", "0")).await("a")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func hostNothingIsLeft(t *testing.T) {
	w := onHost(t, nil)
	s := w.startTask(t, withRole, listening(helper("a", "net", "listen=0.0.0.0:9001"), 9001)).await("a")
	endpoint, service := s.resources.host, strings.TrimPrefix(w.AWSEndpoint(), "http://")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{endpoint, service, "127.0.0.1:9001", s.IP() + ":9001", "127.42.0.2:53"} {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			t.Errorf("a socket still listens at %s", address)
		}
	}
}

// hostActs checks that processes can be stopped here, and packets cannot.
func hostActs(t *testing.T) {
	w := onHost(t, nil)
	a := w.startTask(t, nil, helper("a", "run", "0s", "0")).await("a")
	_, limit := a.Limit(1000)
	_, other := w.Partition(a.Task, a.Task)
	_, services := w.PartitionFromServices(a.Task)
	_, all := w.PartitionFromAll(a.Task)
	for what, err := range map[string]error{"limit the link": limit, "partition from web": other, "partition from services": services, "partition from all": all} {
		if want := "task web: " + what + ": " + network.ErrHostNetwork.Error(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	end, err := a.Freeze("a", "")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the program is frozen", func() bool { return a.states("a", "helper") == "T" })
	must(t, end)
	a.end().stopped()
}
