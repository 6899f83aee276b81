// Package promtool checks what Prometheus and Grafana read, by Prometheus's own parser. It is a module of its own, as
// Prometheus has hundreds of dependencies.
package promtool

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestQueriesOfTheDashboardParse parses each query of the dashboard, with Grafana's variables replaced.
func TestQueriesOfTheDashboardParse(t *testing.T) {
	text, err := os.ReadFile("../../deploy/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries++
			query := regexp.MustCompile(`\$__rate_interval`).ReplaceAllString(target.Expr, "5m")
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
				t.Errorf("%s: %s: %v", p.Title, query, err)
			}
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries, want more", queries)
	}
}
