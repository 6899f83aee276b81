package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarningsNameSettingsThatAreNotEmulated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		definition string
		want       []string
	}{
		"nothing": {`{
			"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["EC2", "FARGATE"], "cpu": "256", "memory": "512", "pidMode": "task",
			"runtimePlatform": {"cpuArchitecture": "ARM64", "operatingSystemFamily": "LINUX"},
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
			"family": "web", "memory": "2048", "cpu": "1024", "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"},
			"containerDefinitions": [{"name": "a", "image": "i"}]
		}`, []string{"$.runtimePlatform.operatingSystemFamily: not emulated: containers run on Linux"}},
		"its parts": {`{
			"family": "web", "memory": "512",
			"volumes": [{"name": "a", "host": {"sourcePath": "/srv"}}, {"name": "b", "efsVolumeConfiguration": {"fileSystemId": "fs-1"}}],
			"containerDefinitions": [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "privileged": true,
				"systemControls": [{"namespace": "net.core.somaxconn", "value": "1"}],
				"linuxParameters": {"capabilities": {"add": ["SYS_PTRACE"]}, "tmpfs": [{"containerPath": "/x", "size": 1}]}}]
		}`, []string{
			"$.volumes[0].host.sourcePath: not emulated: an empty directory of the task takes its hierarchy",
			"$.volumes[1].efsVolumeConfiguration: not emulated: an empty directory of the task takes its hierarchy",
			"$.containerDefinitions[1].linuxParameters.capabilities: not emulated: no container has more than the default capabilities and NET_ADMIN",
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
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: error %v, difference %s", name, err, cmp.Diff(want, got))
		}
	}
}
