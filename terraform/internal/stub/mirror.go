package stub

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// AWS is the release of hashicorp/aws that a workspace gets.
type AWS string

// The majors that the modules support, by the last release whose schema there is.
const (
	AWS5 AWS = "5.99.1"
	AWS6 AWS = "6.25.0"
)

// ServeAsProvider serves as a provider and returns true when terraform has started this program
// under a provider's name, such as terraform-provider-aws_v6.25.0.
func ServeAsProvider() (served bool, err error) {
	base, ok := strings.CutPrefix(filepath.Base(os.Args[0]), "terraform-provider-")
	if !ok {
		return false, nil
	}
	name, version, _ := strings.Cut(base, "_v")
	return true, Serve(name, version)
}

// Install lays out a mirror with this program as all providers, and returns the path of
// terraform's configuration that names it.
func Install(dir string, aws AWS) (config string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for name, version := range map[string]string{"aws": string(aws), "random": "3.7.2", "tls": "4.1.0", "null": "3.2.4"} {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		home := filepath.Join(dir, "mirror", filepath.FromSlash(Source(name)), version, platform)
		if err := os.MkdirAll(home, 0o755); err != nil {
			return "", err
		}
		if err := os.Symlink(self, filepath.Join(home, "terraform-provider-"+name+"_v"+version)); err != nil {
			return "", err
		}
	}
	config = filepath.Join(dir, "terraformrc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(dir, "mirror"))
	return config, os.WriteFile(config, []byte(text), 0o644)
}
