package docker

import (
	"errors"
	"testing"
)

func TestCause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/bin/x": stat /bin/x: no such file or directory: unknown`: `exec: "/bin/x": stat /bin/x: no such file or directory`,
		`Error response from daemon: OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "/bin/x": permission denied: unknown`:                                              `exec: "/bin/x": permission denied`,
		"Error response from daemon: unable to find user x: no matching entries in passwd file":                                                                                                                     "unable to find user x: no matching entries in passwd file",
		"something else": "something else",
	} {
		if got := cause(errors.New(text)).Error(); got != want {
			t.Errorf("%s\n     is %s\nwant %s", text, got, want)
		}
	}
}
