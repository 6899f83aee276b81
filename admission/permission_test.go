package admission

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

func byCode(a, b Code) int { return strings.Compare(a.Code, b.Code) }

// sortedCodes returns those about rights and about the token.
func sortedCodes() []Code {
	return slices.SortedFunc(slices.Values(slices.Concat(permissionCodes(), tokenCodes())), byCode)
}

func TestPermissionCodesAreSortedAndDistinct(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, c := range sortedCodes() {
		codes = append(codes, c.Code)
		if slices.ContainsFunc(definitionCodes(), func(other Code) bool { return other.Code == c.Code }) {
			t.Errorf("%s is among those of definitions, too", c.Code)
		}
	}
	if !slices.IsSortedFunc(permissionCodes(), byCode) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("codes %v", codes)
	}
}

// The tables of the page are made of the rules. Where the page lacks one, the test prints
// it.
func TestPageHasTheTablesOfPermissions(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| Usage | The operator's token | The task's token |\n|---|---|---|\n")
	rights := func(needs []need) string {
		var texts []string
		for _, n := range needs {
			r := n.Rule("NAME")
			texts = append(texts, "`"+r.Subject()+"` "+r.Level)
		}
		return cmp.Or(strings.Join(texts, ", "), "none")
	}
	for _, r := range useRules() {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", r.Kind, rights(r.Operator), rights(r.Runtime))
	}
	var codes strings.Builder
	codes.WriteString("| Code | Severity | About rights and the token | What to do |\n|---|---|---|---|\n")
	for _, c := range sortedCodes() {
		fmt.Fprintf(&codes, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, c.Text, c.Fix)
	}
	page, err := os.ReadFile("../docs/ADMISSION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{table.String(), codes.String()} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/ADMISSION.md does not have the table:\n\n%s", want)
		}
	}
}

// Undetermined is no denial, and neither is a denial undetermined.
func TestUndetermined(t *testing.T) {
	t.Parallel()
	unknown, denied := Finding{Code: codeUndetermined, Severity: taskdef.Error},
		Finding{Code: codeDenied, Severity: taskdef.Error}
	warning := Finding{Code: "ADM-WRAP", Severity: taskdef.Warn}
	for _, c := range []struct {
		findings      []Finding
		loose, strict bool
	}{
		{nil, false, false}, {[]Finding{unknown}, true, true}, {[]Finding{unknown, denied}, false, false},
		{[]Finding{denied}, false, false},
		{[]Finding{unknown, warning}, true, false},
		{[]Finding{{Code: codeDisagree, Severity: taskdef.Error}}, true, true},
	} {
		r := Result{Findings: c.findings}
		if r.Undetermined(false) != c.loose || r.Undetermined(true) != c.strict {
			t.Errorf("%v: undetermined %v, strictly %v", c.findings, r.Undetermined(false), r.Undetermined(true))
		}
	}
}
