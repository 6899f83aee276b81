package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/registry"
)

// started is what a stand-in prints of its start and of its end.
type started struct {
	Argv     []string `json:"argv"`
	UID, GID int
	PID      int
	Signal   string
}

// appsPerTask leaves room for the containers of the mesh: a task has ten at most.
const appsPerTask = 6

// tokenSecret has the Consul token of all tasks, and tokenRules are its rights.
const (
	tokenSecret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token"
	tokenRules  = `service_prefix "" { policy = "write" } node_prefix "" { policy = "write" } agent_prefix "" { policy = "read" }`
)

// popularRun is a run of popular images, each as it is and in the mesh.
type popularRun struct {
	t        *testing.T
	dir, bin string
	images   []registry.Popular
	// references are the images' in the registry of the test.
	references []string
}

// TestEndToEndPopularImagesStartAsWithoutTheMesh: each image is locked and admitted, and has in
// the mesh the argv, user and stop signal that it has without. Process 1 is app-entrypoint,
// except for programs that have to be it.
func TestEndToEndPopularImagesStartAsWithoutTheMesh(t *testing.T) {
	t.Parallel()
	flags := programs(t)
	r := &popularRun{t: t, dir: t.TempDir(), bin: strings.TrimPrefix(flags[1], "bin="), images: registry.PopularImages(t)}
	r.images = slices.DeleteFunc(r.images, func(image registry.Popular) bool {
		return slices.Contains(image.Volumes, "/consul/data") // admit refuses it: ADM-VOLUME
	})
	r.push()
	r.build()
	r.write("scenario.yaml", r.scenario(r.definitions()))
	state := t.TempDir()
	t.Cleanup(func() { showLogs(t, state) })
	got := call(t, append(append([]string{"run", "-dir", state}, flags...), r.dir)...)
	if got.code != 0 {
		t.Errorf("exit code %d: %s\n%s", got.code, got.stdout, got.stderr)
	}
	for i, image := range r.images {
		t.Run(image.Reference, func(t *testing.T) {
			plain, mesh := r.read(t, state, "plain", i), r.read(t, state, "mesh", i)
			if plain.PID != 1 {
				t.Errorf("process %d without the mesh", plain.PID)
			}
			if image.Init != (mesh.PID == 1) {
				t.Errorf("process %d in the mesh", mesh.PID)
			}
			plain.PID, mesh.PID = 0, 0
			if diff := cmp.Diff(plain, mesh); diff != "" {
				t.Errorf("without and in the mesh: %s", diff)
			}
		})
	}
}

// push stores the images in a registry.
func (r *popularRun) push() {
	store := registry.Start(r.t)
	for _, image := range r.images {
		r.references = append(r.references, store.Push(r.t, image.Reference, image.Image(r.t)))
	}
}

// build builds the program that takes the place of all others.
func (r *popularRun) build() {
	r.t.Helper()
	build := exec.CommandContext(r.t.Context(), "go", "build", "-o", filepath.Join(r.dir, "standin"), "./localecs/command/testdata/standin")
	build.Dir, build.Env = testkit.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// write writes a file of the scenario as JSON, and returns its path.
func (r *popularRun) write(name string, content any) string {
	r.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(r.dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// consulECS runs a command of consul-ecs and returns its standard output.
func (r *popularRun) consulECS(args ...string) []byte {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.bin, "consul-ecs"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("consul-ecs %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// definitions writes the task definitions, plain ones and what admission makes of them, and
// returns their files by the names of the tasks.
func (r *popularRun) definitions() map[string]string {
	mesh := r.write("mesh.json", map[string]any{
		"consulServers": map[string]any{
			"hosts": "10.42.0.254", "defaults": map[string]any{"tls": false},
			"grpc": map[string]any{"port": 8502}, "http": map[string]any{"port": 8500, "https": false},
		},
		"proxy": map[string]any{"mode": "direct"},
		"admission": map[string]any{
			"images":  map[string]any{"consulECS": "consul-ecs", "envoy": "envoy"},
			"secrets": []map[string]any{{"name": "CONSUL_HTTP_TOKEN", "valueFrom": tokenSecret}},
		},
	})
	var files []string
	for first := 0; first < len(r.references); first += appsPerTask {
		files = append(files, r.write(fmt.Sprintf("plain-%d.json", len(files)), r.definition(first)))
	}
	lock := filepath.Join(r.dir, "images.lock.json")
	r.consulECS(append([]string{"images", "lock", "-o", lock}, files...)...)
	tasks := map[string]string{}
	for i, file := range files {
		tasks[fmt.Sprintf("plain-%d", i)] = filepath.Base(file)
		name := fmt.Sprintf("mesh-%d", i)
		once := r.consulECS("admit", "-config", mesh, "-images", lock, file)
		admitted := r.write(name+".json", json.RawMessage(once))
		tasks[name] = filepath.Base(admitted)
		if diff := r.consulECS("admit", "-config", mesh, "-images", lock, "-diff", admitted); len(diff) > 0 {
			r.t.Errorf("a second admission changes %s: %s", name, diff)
		}
	}
	return tasks
}

// definition returns a plain task definition of some images.
func (r *popularRun) definition(first int) map[string]any {
	var containers []map[string]any
	for i := first; i < min(first+appsPerTask, len(r.images)); i++ {
		c := map[string]any{
			"name": containerOf(r.images[i]), "image": r.references[i],
			"healthCheck": map[string]any{"command": []string{"CMD", "/healthy"}, "interval": 5, "retries": 10}, // passes once it runs
		}
		if command := r.images[i].Command; command != nil {
			c["command"] = command
		}
		if i == first {
			c["portMappings"] = []map[string]any{{"containerPort": 8080}}
		}
		containers = append(containers, c)
	}
	return map[string]any{
		"family": fmt.Sprintf("popular-%d", first/appsPerTask), "networkMode": "awsvpc", "requiresCompatibilities": []string{"FARGATE"},
		"cpu": "2048", "memory": "4096", "executionRoleArn": "arn:aws:iam::123456789012:role/execution", "containerDefinitions": containers,
	}
}

// containerOf returns the name of an image's container: that of its repository.
func containerOf(image registry.Popular) string {
	repository, _, _ := strings.Cut(image.Reference, ":")
	return strings.NewReplacer("/", "-", ".", "-").Replace(repository)
}

// scenario returns a scenario that starts all tasks and stops them.
func (r *popularRun) scenario(tasks map[string]string) map[string]any {
	images := map[string]any{
		"consul": map[string]any{"programs": map[string]string{"/bin/consul": "${consul}"}},
		"envoy":  map[string]any{"programs": map[string]string{"/usr/local/bin/envoy": "${envoy}"}},
		"consul-ecs": map[string]any{
			"programs": map[string]string{"/bin/consul-ecs": "${bin}/consul-ecs"}, "entrypoint": []string{"/bin/consul-ecs"},
			"user": "5996:5996", "volumes": map[string]string{"/consul": "5996:5996"},
		},
	}
	for i, reference := range r.references {
		images[reference] = r.local(r.images[i])
	}
	names := slices.Sorted(maps.Keys(tasks))
	steps := []map[string]any{{"start": names}}
	for _, name := range names {
		if number, is := strings.CutPrefix(name, "mesh-"); is {
			steps = append(steps, map[string]any{"await": map[string]any{"service": "popular-" + number, "passing": 1, "within": "180s"}})
		}
	}
	return map[string]any{
		"name": "popular", "gatePeriod": "0s", "images": images, "tasks": tasks, "checks": map[string]any{"cleanExits": true},
		"consul": map[string]any{
			"image": "consul", "datacenter": "dc1",
			"tokens": []map[string]any{{"secret": tokenSecret, "rules": tokenRules}},
		},
		"steps": append(steps, map[string]any{"stop": names}),
	}
}

// local returns an image of the scenario with the same configuration: each program is the
// stand-in, where the image or the container names it.
func (r *popularRun) local(image registry.Popular) map[string]any {
	standin := filepath.Join(r.dir, "standin")
	programs := map[string]string{"/healthy": standin}
	for _, argv := range [][]string{image.Entrypoint, image.Cmd, image.Command} {
		if len(argv) > 0 && !strings.HasPrefix(argv[0], "-") {
			programs[path.Join("/usr/local/bin", strings.TrimPrefix(argv[0], "/"))] = standin
			if path.IsAbs(argv[0]) {
				programs[argv[0]] = standin
			}
		}
	}
	user := image.User
	if image.UID != "" {
		user = image.UID
	}
	volumes := map[string]string{}
	for _, volume := range image.Volumes {
		volumes[volume] = "0:0"
	}
	return map[string]any{
		"programs": programs, "volumes": volumes, "entrypoint": image.Entrypoint, "cmd": image.Cmd, "user": user, "stopSignal": image.StopSignal,
	}
}

// read returns what an image's stand-in printed in a task.
func (r *popularRun) read(t *testing.T, state, task string, i int) started {
	t.Helper()
	file := filepath.Join(state, "popular", "logs", fmt.Sprintf("%s-%d", task, i/appsPerTask), containerOf(r.images[i])+".log")
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s started
	for line := range strings.Lines(string(log)) {
		if at := strings.Index(line, `{"`); at >= 0 {
			if err := json.Unmarshal([]byte(line[at:]), &s); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
		}
	}
	if s.Signal == "" {
		t.Errorf("no signal in %s", log)
	}
	return s
}
