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

// roleVariable names the provider that the program serves as, such as aws@6.25.0.
const roleVariable = "STUB_PROVIDER"

// ServeAsProvider serves as a provider and returns true when terraform has started this
// program by a script of Install.
func ServeAsProvider() (served bool, err error) {
	name, version, found := strings.Cut(os.Getenv(roleVariable), "@")
	if !found {
		return false, nil
	}
	return true, serve(name, version)
}

// Install lays out a mirror with this program as all providers, and returns the path of
// terraform's configuration that names it.
func Install(dir string, aws AWS) (config string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for name, version := range map[string]string{
		"aws": string(aws), "random": "3.7.2", "tls": "4.1.0", "null": "3.2.4",
	} {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		target := filepath.Join(dir, "mirror", filepath.FromSlash(source(name)), version, platform)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return "", err
		}
		// A script, because every command of terraform reads the whole file for its checksum.
		script := fmt.Sprintf("#!/bin/sh\nexec env %s=%s@%s '%s'\n", roleVariable, name, version, self)
		if err := os.WriteFile(filepath.Join(target, "terraform-provider-"+name+"_v"+version), []byte(script),
			0o755); err != nil {
			return "", err
		}
	}
	config = filepath.Join(dir, "terraformrc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n"+
		"  }\n}\n", filepath.Join(dir, "mirror"))
	return config, os.WriteFile(config, []byte(text), 0o644)
}
