package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Controller, services and Consul server start at the same instant, as in the first
// `terraform apply`; the server is the last to answer.
func TestEndToEndFirstDeployment(t *testing.T) {
	t.Parallel()
	firstDeployment(t, programs(t), example("first-deployment"))
}

// The same with the tasks in another order and at other moments, and with a server that is more or less late.
func TestEndToEndFirstDeploymentInAnyOrder(t *testing.T) {
	testkit.Long(t)
	programs := programs(t)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			firstDeployment(t, programs, shuffledDeployment(t, seed))
		})
	}
}

// firstDeployment fails when a task ends before it is asked to, among the checks of the scenario.
func firstDeployment(t *testing.T, programs []string, path string) {
	t.Helper()
	code, report, _ := runReport(t, programs, path)
	if code != 0 || report.Answered < 40 || report.Failed != 0 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v, want no failure and 40 requests", code, report)
	}
}

// shuffledDeployment returns the example with the start of each task in a random order,
// within the first 3 s, and with a server that is down for up to 15 s.
func shuffledDeployment(t *testing.T, seed uint64) string {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	data, err := os.ReadFile(filepath.Join(example("first-deployment"), "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tasks := []string{"controller", "web", "api-1", "api-2"}
	random.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	var starts []string
	at := 0
	for _, task := range tasks {
		starts = append(starts, fmt.Sprintf("  - {at: %dms, start: [%s]}", at, task))
		at += random.IntN(1000)
	}
	text := replaceOnce(t, string(data), `(?m)^  - start: \[.*\]$`, strings.Join(starts, "\n"))
	text = replaceOnce(t, text, `for: 8s, server: down`, fmt.Sprintf("for: %dms, server: down", 1000+random.IntN(14_000)))
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example("hello-mesh"))); err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "../hello-mesh/", "")
	if err := os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// replaceOnce replaces the one match of a pattern.
func replaceOnce(t *testing.T, text, pattern, with string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	if n := len(re.FindAllString(text, -1)); n != 1 {
		t.Fatalf("%s matches %d times in\n%s", pattern, n, text)
	}
	return re.ReplaceAllLiteralString(text, with)
}
