package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sceneFile writes a scenario that could begin, and returns its path.
func sceneFile(t *testing.T, dir, file, text string) string {
	t.Helper()
	const consul = "images: {i: {}}\nconsul: {image: i}\n"
	const definition = `{"family": "p", "networkMode": "awsvpc", "containerDefinitions": [{"name": "a", "image": "i", "memory": 64, "command": ["x"]}]}`
	for name, text := range map[string]string{file: text + "tasks: {a: plain.json}\n" + consul, "plain.json": definition} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, file)
}

func TestJobsAreScenariosTimesStopOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := sceneFile(t, dir, "first.yaml", "name: first\n"), sceneFile(t, dir, "second.yaml", "name: second\nstopOrder: at-once\n")
	for _, c := range []struct {
		flag string
		want []string
	}{
		{"", []string{"first reverse first", "second at-once second"}},
		{"reverse", []string{"first reverse first", "second reverse second"}},
		{"both", []string{"first reverse first-reverse", "first at-once first-at-once", "second reverse second-reverse", "second at-once second-at-once"}},
	} {
		f := &runFlags{dir: t.TempDir(), stopOrder: c.flag}
		jobs, _, err := f.jobs([]string{first, second})
		if err == nil {
			err = f.claim(jobs)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range jobs {
			got = append(got, strings.Join([]string{j.plan.Name(), j.order, filepath.Base(j.dir.Name())}, " "))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("-stop-order %q (-want +got):\n%s", c.flag, diff)
		}
		closeAll(jobs)
	}
}

// Nothing begins, and nothing is emptied, while any scenario is wrong.
func TestRunReportsMistakesOfAllScenariosBeforeStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, twin := sceneFile(t, dir, "good.yaml", "name: good\n"), sceneFile(t, dir, "twin.yaml", "name: good\n")
	bad := sceneFile(t, dir, "bad.yaml", "name: bad\nstopOrder: never\n")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{good, bad, filepath.Join(dir, "none")}, []string{"bad.yaml: stopOrder", "none: no such file"}},
		{[]string{good, twin}, []string{"good.yaml and ", "twin.yaml are both named good"}},
		{[]string{"-stop-order", "never", good}, []string{`-stop-order: "never": want reverse, at-once or both`}},
	} {
		state := t.TempDir()
		got := call(t, append([]string{"run", "-dir", state}, c.args...)...)
		for _, want := range c.says {
			if got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, want) {
				t.Errorf("%v: exit %d, stdout %q, stderr does not say %q:\n%s", c.args, got.code, got.stdout, want, got.stderr)
			}
		}
		if entries, _ := os.ReadDir(state); len(entries) != 0 {
			t.Errorf("%v: %s was touched", c.args, entries[0].Name())
		}
	}
}
