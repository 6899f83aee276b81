package cli

import "strings"

// Set by the linker, see the Makefile.
var (
	version    = "0.7.0"
	prerelease = "dev"
	commit     = ""
	image      = ""
)

// Image returns the image of consul-ecs of the one who built this program, empty unless the build names it.
func Image() string { return unquote(image) }

// Version is "v<version>[-<prerelease>][ (<commit>)]", the same for both
// binaries.
func Version() string {
	return formatVersion(version, prerelease, commit)
}

// formatVersion drops the single quotes that build systems leave around linker
// values.
func formatVersion(version, prerelease, commit string) string {
	version, prerelease, commit = unquote(version), unquote(prerelease), unquote(commit)
	s := "v" + version
	if prerelease != "" {
		s += "-" + prerelease
	}
	if commit != "" {
		s += " (" + commit + ")"
	}
	return s
}

func unquote(s string) string { return strings.ReplaceAll(s, "'", "") }
