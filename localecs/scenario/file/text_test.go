package file

import (
	"reflect"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

func TestStepsDescribeThemselves(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	yes, no := true, false
	for _, c := range []struct {
		step Step
		want string
	}{
		{Step{Start: []string{"web", "api-1"}}, "start web, api-1"},
		{Step{At: new(time.Duration), Start: []string{"web"}}, "start web"},
		{Step{Stop: &Stop{Tasks: []string{"web", "api-1"}}}, "stop web, api-1"},
		{Step{Await: &Await{Service: "api", Passing: 2}}, "await 2 passing instances of api"},
		{Step{Await: &Await{Task: "api-1", Container: "api", Status: "critical"}},
			"await check of container api in api-1 to be critical"},
		{Step{Await: &Await{Requests: 40}}, "await 40 answered requests"},
		{Step{Await: &Await{Service: "api", Steady: true}}, "await service api to be steady"},
		{Step{Await: &Await{Logins: []string{"a", "b"}}}, "await logins by a and b"},
		{Step{Scale: &Scale{Service: "api", Count: 3}}, "scale api to 3"},
		{Step{Deploy: &Deploy{Service: "api"}}, "deploy api"},
		{Step{Deploy: &Deploy{Service: "api", Definition: "api-2.json"}}, "deploy api with api-2.json"},
		{Step{Kill: &chaos.Kill{Task: "api-1"}}, "kill everything in api-1"},
		{Step{MTLS: &MTLS{Task: "api-1", Port: 20000, Service: "api"}},
			"look whether port 20000 of api-1 is api in mTLS"},
		{Step{Post: &Get{Task: "api-1", URL: "http://127.0.0.1:1/x"}}, "post http://127.0.0.1:1/x in api-1"},
		{Step{Traffic: &Traffic{Task: "web", Port: 8080, Rate: 20}}, "send 20 requests a second to port 8080 of web"},
		{Step{EndTraffic: &EndTraffic{}}, "end the traffic"},
		{Step{EndTraffic: &EndTraffic{Name: "orderly"}}, "end the traffic: orderly"},
		{Step{Kill: &chaos.Kill{Task: "api-1", Container: "sidecar-proxy"}}, "kill sidecar-proxy in api-1"},
		{Step{Get: &Get{Task: "api-1", URL: "http://127.0.0.1:1/x"}}, "get http://127.0.0.1:1/x in api-1"},
		{Step{Await: &Await{Task: "api-1", InTraffic: &yes}}, "await task api-1 to be in traffic"},
		{Step{Await: &Await{Task: "api-1", InTraffic: &no}}, "await task api-1 to be out of traffic"},
		{Step{Await: &Await{Task: "api-1", Container: "consul-client", Restarts: 2}},
			"await 2 restarts of container consul-client in api-1"},
		{Step{Await: &Await{Task: "api-1", Tokens: new(int)}}, "await 0 tokens of task api-1"},
		{Step{Faults: make([]chaos.Fault, 2)}, "begin a schedule of 2 faults"},
		{Step{Await: &Await{FaultsOver: true}}, "await the end of all faults"},
		{Step{Await: &Await{Task: "api-1", Stopped: true}}, "await task api-1 to stop by itself"},
		{Step{Pause: time.Minute}, "pause 1m0s"},
	} {
		if got := c.step.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		for i, v := range reflect.VisibleFields(reflect.TypeFor[Step]()) {
			if !reflect.ValueOf(c.step).Field(i).IsZero() {
				said[v.Name] = true
			}
		}
	}
	for _, v := range reflect.VisibleFields(reflect.TypeFor[Step]()) {
		if !said[v.Name] {
			t.Errorf("a step with %s is not tested: say what it does", v.Name)
		}
	}
}
