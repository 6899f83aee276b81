package runtime

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/taskdef"
)

func TestWarningsNameSettingsThatAreNotEmulated(t *testing.T) {
	t.Parallel()
	here := map[string]string{"amd64": "X86_64", "arm64": "ARM64"}[goruntime.GOARCH]
	for name, c := range map[string]struct {
		definition string
		want       []string
	}{
		"nothing": {`{
			"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["EC2", "FARGATE"], "cpu": "256", "memory": "512", "pidMode": "task",
			"runtimePlatform": {"cpuArchitecture": "` + here + `", "operatingSystemFamily": "LINUX"},
			"volumes": [{"name": "data"}, {"name": "more", "host": {}}],
			"containerDefinitions": [{"name": "a", "image": "i", "memory": 128, "linuxParameters": {"initProcessEnabled": true}}]
		}`, nil},
		"the task": {`{
			"family": "web", "networkMode": "bridge", "requiresCompatibilities": ["EC2"], "memory": "512", "pidMode": "host",
			"containerDefinitions": [{"name": "a", "image": "i", "linuxParameters": {"capabilities": {"add": ["NET_ADMIN"]}}}]
		}`, []string{
			"$.requiresCompatibilities: not emulated: the task runs as on Fargate",
			"$.networkMode: not emulated: the -network flag of localecs decides, awsvpc by default",
			"$.pidMode: not emulated: each container has its own processes",
		}},
		"the system": {`{
			"family": "web", "memory": "2048", "cpu": "1024",
			"runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"},
			"containerDefinitions": [{"name": "a", "image": "i"}]
		}`, []string{"$.runtimePlatform.operatingSystemFamily: not emulated: containers run on Linux"}},
		"its parts": {`{
			"family": "web", "memory": "512",
			"volumes": [{"name": "a", "host": {"sourcePath": "/srv"}},
				{"name": "b", "efsVolumeConfiguration": {"fileSystemId": "fs-1"}}],
			"containerDefinitions": [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "privileged": true,
				"systemControls": [{"namespace": "net.core.somaxconn", "value": "1"}],
				"linuxParameters": {"capabilities": {"add": ["SYS_PTRACE"]}, "tmpfs": [{"containerPath": "/x", "size": 1}]}}]
		}`, []string{
			"$.volumes[0].host.sourcePath: not emulated: an empty directory of the task takes its hierarchy",
			"$.volumes[1].efsVolumeConfiguration: not emulated: an empty directory of the task takes its hierarchy",
			"$.containerDefinitions[1].linuxParameters.capabilities.add: not emulated: " +
				"no container has more than the default capabilities and NET_ADMIN",
			"$.containerDefinitions[1].linuxParameters.tmpfs: not emulated: the paths are part of the root file system",
			"$.containerDefinitions[1].privileged: not emulated: the container has no more rights than others",
			"$.containerDefinitions[1].systemControls: not emulated: the kernel's defaults stay",
		}},
	} {
		file := filepath.Join(t.TempDir(), "web.json")
		if err := os.WriteFile(file, []byte(c.definition), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, w := range c.want {
			want = append(want, file+": "+w)
		}
		_, got, err := Load(file)
		if err != nil || !gocmp.Equal(got, want) {
			t.Errorf("%s: error %v, difference %s", name, err, gocmp.Diff(want, got))
		}
	}
}

// TestEveryMemberIsEmulatedOrNamed checks that each member of a definition is emulated, or that a warning names it. A new
// member has to be added here.
func TestEveryMemberIsEmulatedOrNamed(t *testing.T) {
	t.Parallel()
	task := `family taskRoleArn executionRoleArn cpu memory tags pidMode`
	volume := `volumes.name`
	container := `name image cpu memory memoryReservation portMappings essential restartPolicy entryPoint command
		environment environmentFiles mountPoints volumesFrom secrets dependsOn startTimeout stopTimeout hostname user
		workingDirectory readonlyRootFilesystem dockerLabels ulimits healthCheck
		linuxParameters.initProcessEnabled linuxParameters.capabilities.drop
		logConfiguration` // every definition has one, and docs/localecs/fidelity.md says where logs are
	emulated := slices.Concat(taskdef.OutputKeys, strings.Fields(task+" "+volume))
	for _, key := range strings.Fields(container) {
		emulated = append(emulated, "containerDefinitions."+key)
	}
	named := func(def *taskdef.TaskDefinition, path string) bool {
		return slices.ContainsFunc(Unfaithful(def), func(warning string) bool {
			return strings.HasPrefix(strings.ReplaceAll(warning, "[0]", ""), "$."+path+": ")
		})
	}
	def := &taskdef.TaskDefinition{}
	var check func(of reflect.Value, prefix string)
	check = func(of reflect.Value, prefix string) {
		for _, f := range reflect.VisibleFields(of.Type()) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			path, field := prefix+key, of.FieldByIndex(f.Index)
			if slices.Contains(emulated, path) {
				continue
			}
			_, enum, _ := strings.Cut(f.Tag.Get("ecs"), "enum=")
			warned := false
			for _, value := range strings.Split(enum, "|") {
				set(field, value)
				warned = warned || named(def, path)
			}
			inner := reflect.Indirect(field)
			if inner.Kind() == reflect.Slice {
				inner = inner.Index(0)
			}
			if !warned && inner.Kind() == reflect.Struct {
				check(inner, path+".")
			} else if !warned {
				t.Errorf("%s is neither emulated nor named by a warning", path)
			}
			field.SetZero()
		}
	}
	check(reflect.ValueOf(def).Elem(), "")
}

// set sets a member to the text, true or 1, and a list to one of them.
func set(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(cmp.Or(text, "x"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0), text)
	}
}
