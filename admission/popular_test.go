package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit/registry"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Below app-entrypoint a container of a popular image runs the line that Docker runs, and its
// stop signal is held back. What must be process 1 is as it was.
func TestPopularImagesRunTheLineOfDocker(t *testing.T) {
	t.Parallel()
	for _, image := range registry.PopularImages(t) {
		for _, command := range [][]string{nil, image.Command} {
			t.Run(strings.TrimSpace(image.Reference+" "+strings.Join(command, " ")), func(t *testing.T) {
				t.Parallel()
				checkPopular(t, image, command)
			})
		}
	}
}

func checkPopular(t *testing.T, image registry.Popular, command []string) {
	t.Helper()
	member := `"user": "7"`
	if len(command) > 0 {
		words, err := json.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		member = fmt.Sprintf(`"command": %s`, words)
	}
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{
		Entrypoint: image.Entrypoint, Cmd: image.Cmd, User: image.User, StopSignal: image.StopSignal,
		Volumes: image.Volumes,
	}))
	plain := admitLocked(t, definition("", member), nil, false)
	if wrapperWords(lines(plain)) > 0 && !slices.Contains(codesOf(plain), codeEntryPoint) {
		t.Errorf("without the lock %q, findings %v", lines(plain), plain.Findings)
	}
	r := admitLocked(t, definition("", member), lock, false)
	line := lines(r)
	words := wrapperWords(line)
	if image.Init {
		if !slices.Equal(line, command) || !slices.Contains(codesOf(r), codeWrap) {
			t.Errorf("%q, findings %v, want it not wrapped", line, r.Findings)
		}
		return
	}
	want := image.Cmd
	if len(command) > 0 {
		want = command
	}
	if want = slices.Concat(image.Entrypoint, want); words == 0 || !slices.Equal(line[words:], want) {
		t.Errorf("%q, want %q below app-entrypoint", line, want)
	}
	signal, _ := workload.ParseStopSignal(image.StopSignal)
	flag := slices.Index(line[:words], "-"+stopSignalFlag)
	got := ""
	if flag > 0 {
		got = line[flag+1]
	}
	if want := strings.TrimPrefix(signal, "TERM"); got != want {
		t.Errorf("%q has the stop signal %q, want %q", line[:words], got, want)
	}
}
