package moduledoc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const readme = "# m\n\n" + begin + "\nold\n" + end + "\n\nend\n"

func module(t *testing.T, readme, configuration string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"README.md": readme, "main.tf": configuration} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTablesReplaceTheTextBetweenTheMarkers(t *testing.T) {
	t.Parallel()
	got, err := Fill(module(t, readme, `
variable "b" {
  description = "Either | or."
  type = object({
    x = optional(string)
  })
  default = null
}
variable "z" {
  description = "Needed."
  type        = string
}
output "o" {
  description = "Result."
  value       = 1
}`))
	want := "# m\n\n" + begin + `

## Variables

| Name | Type | Default | |
|---|---|---|---|
| ` + "`z` | `string` | required" + ` | Needed. |
| ` + "`b` | `object({ x = optional(string) })` | `null`" + ` | Either \| or. |

## Outputs

| Name | |
|---|---|
| ` + "`o`" + ` | Result. |

` + end + "\n\nend\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
	}
}

func TestIncompleteModulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ readme, configuration, want string }{
		{"# m\n", "", "has not both markers"},
		{readme, `variable "v" {}`, `variable "v" has no description`},
		{readme, `output "o" { value = 1 }`, `output "o" has no description`},
	} {
		if _, err := Fill(module(t, tt.readme, tt.configuration)); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
