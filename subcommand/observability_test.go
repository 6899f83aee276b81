package subcommand

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/broker"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// ownMetrics returns the exposition of all metrics of the program.
func ownMetrics() string {
	var all strings.Builder
	for _, set := range []interface {
		Handler() http.Handler
	}{controller.NewMetrics("1"), broker.NewMetrics("1")} {
		answer := httptest.NewRecorder()
		set.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		all.WriteString(answer.Body.String())
	}
	return all.String()
}

// TestObservabilityPageHasEachMetric compares the tables at the end of the page with the program.
func TestObservabilityPageHasEachMetric(t *testing.T) {
	t.Parallel()
	const begin = "## Our metrics\n"
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "OBSERVABILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), begin)
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(ownMetrics(), -1) {
		kinds[m[1]] = m[2]
	}
	var table strings.Builder
	table.WriteString(begin + "\n| Metric | Kind | |\n|---|---|---|\n")
	for _, m := range regexp.MustCompile(`(?m)^# HELP (\S+) (.*)$`).FindAllStringSubmatch(ownMetrics(), -1) {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", m[1], kinds[m[1]], m[2])
	}
	testkit.Golden(t, "../../docs/OBSERVABILITY.md", []byte(head+table.String()))
}

// TestDeployedFilesNameMetricsThatExist looks for each series of rules and dashboard in the program, or among
// those of an Envoy 1.40 below Consul 1.20.
func TestDeployedFilesNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile(filepath.Join("testdata", "envoy_metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"envoy_cluster_name": true} // a label
	for _, name := range strings.Fields(string(recorded)) {
		known[name] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(ownMetrics(), -1) {
		known[m[1]] = true
	}
	for _, path := range []string{"deploy/alerts.yaml", "deploy/alerts_test.yaml", "deploy/dashboard.json",
		"docs/OBSERVABILITY.md"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(), path))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\b(?:consul_ecs_(?:controller|token_broker)|`+
			`envoy_(?:cluster|control|rbac|listener|server))_\w+`).FindAllString(string(text), -1)
		if len(names) < 6 {
			t.Errorf("%s names %d series, want more", path, len(names))
		}
		for _, name := range names {
			if !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}

// TestDashboardHasWhatGrafanaNeeds checks the model of the dashboard.
func TestDashboardHasWhatGrafanaNeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "deploy", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title         string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: its ID %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the grid", p.Title)
		}
	}
}
