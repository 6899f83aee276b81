package subcommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testLock = `{"version": 1, "images": {"example/app:1": {"digest": "sha256:%", "platforms": {"linux/amd64": {
	"digest": "sha256:%", "entrypoint": ["/entry"], "cmd": ["serve"], "stopSignal": "SIGQUIT"}}}}}`

func TestAdmitReadsTheProgramsOfImages(t *testing.T) {
	t.Parallel()
	lock := writeLock(t, strings.ReplaceAll(testLock, "%", strings.Repeat("a", 64)))
	code, stdout, stderr := callAdmit(plainTask(""), "-config", admitMesh(t), "-images", lock, "-pin", "-")
	if code != 0 {
		t.Fatalf("exit %d, stderr %s", code, stderr)
	}
	for _, want := range []string{`"-stop-signal",` + "\n", `"QUIT",` + "\n", `"/entry"` + "\n", `"serve"` + "\n",
		`"image": "example/app:1@sha256:aaaa`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s has no %s", stdout, want)
		}
	}
	if code, diff, _ := callAdmit(stdout, "-config", admitMesh(t), "-images", lock, "-pin", "-diff", "-"); code != 0 ||
		diff != "" {
		t.Errorf("exit %d, admitting it again changes %s", code, diff)
	}
}

func TestAdmitRefusesALockThatItCannotRead(t *testing.T) {
	t.Parallel()
	whole := strings.ReplaceAll(testLock, "%", strings.Repeat("a", 64))
	for name, c := range map[string]struct{ lock, want string }{
		"damaged":         {whole[:len(whole)/2], "damaged image lock"},
		"another version": {strings.Replace(whole, `"version": 1`, `"version": 2`, 1), "image lock of version 2"},
		"short digest":    {strings.Replace(testLock, "%", "a", 2), "want sha256: and 64 hexadecimal digits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callAdmit(plainTask(""), "-config", admitMesh(t), "-images",
				writeLock(t, c.lock), "-")
			if code != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, stderr %s, want 1 and %q", code, stderr, c.want)
			}
			if stdout != "" {
				t.Errorf("it prints %s", stdout)
			}
		})
	}
	code, _, stderr := callAdmit(plainTask(""), "-config", admitMesh(t), "-pin", "-")
	if want := "name it by -images"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("-pin alone: exit %d, stderr %s, want 1 and %q", code, stderr, want)
	}
	code, _, stderr = callAdmit(plainTask(""), "-config", admitMesh(t), "-images",
		filepath.Join(t.TempDir(), "none.json"), "-")
	if want := "read the image lock"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("no lock: exit %d, stderr %s, want 1 and %q", code, stderr, want)
	}
}

// writeLock writes a lock, and returns its name.
func writeLock(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "images.lock.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
