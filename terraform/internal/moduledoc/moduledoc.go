// Package moduledoc makes the tables of variables and outputs in the README of a
// Terraform module.
//
// Flow: Fill reads the module's variables and outputs, and replaces what stands between
// the two markers of its README. A test of the parent directory compares every README with the
// result; with -update it rewrites them.
// Owns: the form of the tables.
// Never does: write a file.
package moduledoc

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-config-inspect/tfconfig"
)

// Markers of the generated part of a README.
const (
	begin = "<!-- variables and outputs: generated -->"
	end   = "<!-- end of variables and outputs -->"
)

// Fill returns the README of a module with its tables as they should be.
func Fill(dir string) ([]byte, error) {
	path := filepath.Join(dir, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return nil, fmt.Errorf("%s has not both markers: add the lines %s and %s", path, begin, end)
	}
	module, diagnostics := tfconfig.LoadModule(dir)
	if diagnostics.HasErrors() {
		return nil, fmt.Errorf("read module %s: %w", dir, diagnostics.Err())
	}
	for name, v := range module.Variables {
		if v.Description == "" {
			return nil, fmt.Errorf("%s: variable %q has no description", dir, name)
		}
	}
	for name, o := range module.Outputs {
		if o.Description == "" {
			return nil, fmt.Errorf("%s: output %q has no description", dir, name)
		}
	}
	return []byte(before + begin + "\n\n" + tables(module) + "\n" + end + after), nil
}

func tables(m *tfconfig.Module) string {
	var b strings.Builder
	b.WriteString("## Variables\n\n| Name | Type | Default | |\n|---|---|---|---|\n")
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(m.Variables)) {
			if v := m.Variables[name]; v.Required == required {
				fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, cell(v.Type), defaultOf(v), cell(v.Description))
			}
		}
	}
	if len(m.Outputs) > 0 {
		b.WriteString("\n## Outputs\n\n| Name | |\n|---|---|\n")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(m.Outputs[name].Description))
	}
	return b.String()
}

// defaultOf returns a variable's default as code, or "required".
func defaultOf(v *tfconfig.Variable) string {
	if v.Required {
		return "required"
	}
	text, err := json.Marshal(v.Default)
	if err != nil { // a value of HCL always is one of JSON
		panic(err)
	}
	return "`" + cell(string(text)) + "`"
}

// cell puts a text into one line of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
