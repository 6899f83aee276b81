package metadata_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

// recording is the state of a task and what the ECS agent's own handlers answer about it. They were
// recorded from the agent's source of June 2026 (8dfceca6). What Fargate's agent adds to them was
// added there: clock, storage, snapshotter, and the order of containers.
type recording struct {
	Name     string
	Snapshot metadata.Snapshot
	Answers  []recordedAnswer
}

type recordedAnswer struct {
	Method, Path, Body string
	httpAnswer
}

type httpAnswer struct {
	Status                 int
	Type, Location, Answer string
}

// differs lists the requests that localecs answers in another way, and why.
var differs = map[string]string{
	"phase-a-starting GET /v4/" + app + "/task": notCreated,
	"phase-a-starting GET /v4/" + app:           notCreated,
	"phase-a-starting GET /v3/" + app:           notCreated,
	running + "GET /v1/credentials":             noV1,
	running + "GET /v1/credentials?id=nope":     noV1,

	running + "POST /api/" + app + "/fault/v1/network-blackhole-port/start": noFaults,
	running + "POST /api/" + app + "/fault/v1/network-latency/status":       noFaults,
	running + "POST /api/" + app + "/fault/v1/network-packet-loss/stop":     noFaults,
	running + "POST /api/" + app + "/fault/v1/network-latency/start":        noFaults,
	running + "GET /api/" + app + "/fault/v1/network-latency/start":         noFaults,
	running + "POST /api/nope/fault/v1/network-latency/start":               noFaults,
}

const (
	app     = "-0413370066"
	running = "phase-b-running "

	notCreated = "Fargate shows a CPU limit of 0 for a container that was not created yet"
	noV1       = "ECS gives no container this address any more"
	noFaults   = "localecs has no fault endpoints"
)

func recordings(t *testing.T) (all []recording) {
	t.Helper()
	f, err := os.Open("testdata/agent/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var r recording
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestAnswersEqualTheAgents compares status, headers and bytes.
func TestAnswersEqualTheAgents(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	for _, r := range recordings(t) {
		m := r.Snapshot
		h := metadata.TaskHandler(metadata.Task{
			Metadata:    metadata.New(metadata.Options{Lookup: lookup(m)}),
			Credentials: iam.Handler(iam.NewStore()),
			Agent:       metadata.ProtectionHandler(lookup(m), metadata.NewProtections()),
		})
		for i, a := range r.Answers {
			request := r.Name + " " + a.Method + " " + strings.ReplaceAll(a.Path, taskID, "")
			asked[request] = true
			rec := httptest.NewRecorder()
			req := httptest.NewRequest(a.Method, a.Path, strings.NewReader(a.Body))
			req.RemoteAddr = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250) // a bucket of its own
			h.ServeHTTP(rec, req)
			head := rec.Header()
			got := httpAnswer{rec.Code, head.Get("Content-Type"), head.Get("Location"), rec.Body.String()}
			diff := cmp.Diff(a.httpAnswer, got)
			if diff == "" == (differs[request] == "") {
				continue
			}
			t.Errorf("%s %s: other than listed (%q) (-agent +localecs):\n%s", request, a.Body, differs[request], diff)
		}
	}
	for request := range differs {
		if !asked[request] {
			t.Errorf("%s is listed, and was not recorded", request)
		}
	}
}
