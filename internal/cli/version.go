package cli

import "strings"

// Set by the linker, see the Makefile.
var (
	version = "1.0.0-dev"
	commit  = ""
	image   = ""
)

// Image returns the image of consul-ecs of the one who built this program, empty unless the build names it.
func Image() string { return unquote(image) }

// Version returns "v<version>[ (<commit>)]", the same for both binaries.
func Version() string { return formatVersion(version, commit) }

// formatVersion drops the single quotes that build systems leave around linker
// values.
func formatVersion(version, commit string) string {
	s := "v" + unquote(version)
	if commit = unquote(commit); commit != "" {
		s += " (" + commit + ")"
	}
	return s
}

func unquote(s string) string { return strings.ReplaceAll(s, "'", "") }
