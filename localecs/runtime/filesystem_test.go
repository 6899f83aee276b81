package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Shared volumes, read-only mounts, read-only root.
func TestReadOnlyRootAndVolumes(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	volume := t.TempDir()
	_, out := run(t, r, Spec{
		ReadOnlyRoot: true,
		Mounts:       []Mount{{Source: volume, Target: "/consul"}},
		Args:         []string{"/bin/helper", "write", "/x", "/tmp/x", "/etc/hosts", "/bin/helper", "/consul/x", "/dev/shm/x"},
	})
	if want := "/x EROFS\n/tmp/x EROFS\n/etc/hosts EROFS\n/bin/helper EROFS\n/consul/x \n/dev/shm/x \n"; out != want {
		t.Errorf("read-only root:\n%s\nwant\n%s", out, want)
	}
	if b, err := os.ReadFile(filepath.Join(volume, "x")); string(b) != "written\n" {
		t.Errorf("volume on the host: %q, %v", b, err)
	}
	_, out = run(t, r, Spec{
		Mounts: []Mount{{Source: volume, Target: "/consul", ReadOnly: true}},
		Args:   sh("/bin/helper write /consul/y /x /tmp/x; read line </consul/x; echo $line"),
	})
	if want := "/consul/y EROFS\n/x \n/tmp/x \nwritten\n"; out != want {
		t.Errorf("read-only mount:\n%s\nwant\n%s", out, want)
	}
}

func TestProgramsOfTheImageCannotBeChanged(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, out := run(t, r, Spec{Args: sh("/bin/helper write /bin/sleep /proc/sys/kernel/printk /sys/x; /bin/helper bind")})
	if want := "/bin/sleep EROFS\n/proc/sys/kernel/printk EROFS\n/sys/x EROFS\noperation not permitted\n"; out != want {
		t.Errorf("\n%s\nwant\n%s", out, want)
	}
}

func TestContainerSeesItsImageOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	extra := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(extra, []byte("certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	img := Image{
		Name:     "minimal",
		Programs: map[string]string{"/bin/sh": "/bin/sh"},
		Files:    map[string]string{"/etc/ssl/ca.pem": extra},
		Volumes:  []Dir{{Path: "/var/lib/app", UID: 7, GID: 8, Mode: 0o700}},
	}
	_, out := run(t, r, Spec{Image: img, Args: sh("echo /*; echo /bin/*; echo /etc/*; read l </etc/ssl/ca.pem; echo $l; sleep 1 2>&1")})
	lines := strings.Split(out, "\n")
	for i, want := range []string{
		"/bin /dev /etc /lib /lib64 /proc /root /sys /tmp /var",
		"/bin/sh",
		"/etc/group /etc/hostname /etc/hosts /etc/ld.so.cache /etc/passwd /etc/resolv.conf /etc/ssl",
		"certificate",
		"/bin/sh: 1: sleep: not found",
	} {
		// The loader's files depend on the distribution.
		got := strings.Replace(lines[i], "/etc/ld.so.cache ", "", 1)
		want = strings.Replace(want, "/etc/ld.so.cache ", "", 1)
		if i == 0 {
			got, want = strings.Replace(got, "/lib64 ", "", 1), strings.Replace(want, "/lib64 ", "", 1)
		}
		if got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
}

// Without the addresses, which are network's.
func TestFilesAndHostname(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, out := run(t, r, Spec{
		Hostname:   "ip-10-42-0-5.us-west-2.compute.internal",
		Hosts:      "127.0.0.1 localhost\n10.42.0.5 ip-10-42-0-5.us-west-2.compute.internal\n",
		ResolvConf: "nameserver 10.42.0.2\n",
		Args:       sh("while read l; do echo $l; done </etc/hosts; read l </etc/hostname; echo $l; read l </etc/resolv.conf; echo $l; echo $HOSTNAME; read l </proc/sys/kernel/hostname; echo $l"),
	})
	want := "127.0.0.1 localhost\n10.42.0.5 ip-10-42-0-5.us-west-2.compute.internal\n" +
		"ip-10-42-0-5.us-west-2.compute.internal\nnameserver 10.42.0.2\n" +
		"ip-10-42-0-5.us-west-2.compute.internal\nip-10-42-0-5.us-west-2.compute.internal\n"
	if out != want {
		t.Errorf("\n%s\nwant\n%s", out, want)
	}
	own, err := os.Hostname()
	if err != nil || strings.HasPrefix(own, "ip-10-42") {
		t.Errorf("the host's own name is %q now, %v", own, err)
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, out := run(t, r, Spec{User: "5995", Args: sh(
		"echo dropped >/dev/null; echo to stdout >/dev/stdout; echo to stderr >/dev/stderr; echo /dev/*; " +
			"while read a b c; do case $b in /dev/shm) echo $a $b $c;; esac; done </proc/mounts")})
	for _, want := range []string{
		"to stdout\n", "to stderr\n",
		"/dev/fd /dev/full /dev/null /dev/ptmx /dev/pts /dev/random /dev/shm /dev/stderr /dev/stdin /dev/stdout ",
		"/dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSharedMemoryIsPrivateAndLimited(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, out := start(t, r, Spec{Args: sh("/bin/helper write /dev/shm/mine; echo ready; exec /bin/sleep 1000")})
	out.await(t, "ready")
	_, other := run(t, r, Spec{Args: sh("echo /dev/shm/*")})
	if other != "/dev/shm/*\n" {
		t.Errorf("another container's /dev/shm: %q", other)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Join("/proc", itoa(c.PID()), "root/dev/shm"), &st); err != nil {
		t.Fatal(err)
	}
	if got := st.Blocks * uint64(st.Bsize); got != 64<<20 {
		t.Errorf("/dev/shm is %d bytes, want 64 MiB", got)
	}
}

// A volume takes over the ownership of the image's directory, which is how a
// container that is not root writes to it.
func TestVolumeOwnership(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	img := toolbox(t)
	img.Volumes = []Dir{{Path: "/data", UID: 5995, GID: 5990}, {Path: "/scratch", UID: 5995, GID: 5990, Mode: 0o750}}
	data, plain := t.TempDir(), t.TempDir()
	_, out := run(t, r, Spec{
		Image: img, User: "envoy", ReadOnlyRoot: true,
		Mounts: []Mount{{Source: data, Target: "/data"}, {Source: plain, Target: "/plain"}},
		Args:   []string{"/bin/helper", "write", "/data/x", "/scratch/x", "/plain/x"},
	})
	if want := "/data/x \n/scratch/x \n/plain/x EACCES\n"; out != want {
		t.Errorf("\n%s\nwant\n%s", out, want)
	}
	st, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if sys := st.Sys().(*syscall.Stat_t); sys.Uid != 5995 || sys.Gid != 5990 {
		t.Errorf("volume belongs to %d:%d", sys.Uid, sys.Gid)
	}
}

// A container that leaves a link in a shared volume must not lead the next
// one's mounts out to the host.
func TestLinksInVolumesLeadNowhere(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	outside, volume, inner := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(volume, "inner")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Start(Spec{
		Name: "app", Image: toolbox(t), Args: sh("echo x >/consul/inner/deep/x"),
		Mounts: []Mount{{Source: inner, Target: "/consul/inner/deep"}, {Source: volume, Target: "/consul"}},
	})
	if err == nil {
		t.Error("the mount went through a link to nowhere")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

func TestNestedAndFileMounts(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	outer, inner, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("a file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, out := run(t, r, Spec{
		Mounts: []Mount{
			{Source: inner, Target: "/v/inner/"},
			{Source: outer, Target: "/v"},
			{Source: file, Target: "/etc/config/f", ReadOnly: true},
		},
		Args: sh("echo 1 >/v/inner/x; read l </etc/config/f; echo $l; /bin/helper write /etc/config/f"),
	})
	if want := "a file\n/etc/config/f EROFS\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if _, err := os.Stat(filepath.Join(inner, "x")); err != nil {
		t.Error(err)
	}
	for _, m := range []Mount{{Source: outer, Target: "relative"}, {Source: outer, Target: "/"}, {Source: "/no/such/dir", Target: "/v"}} {
		c, err := r.Start(Spec{Name: "app", Image: toolbox(t), Args: sh("true"), Mounts: []Mount{m}})
		if err == nil {
			t.Errorf("%+v was accepted", m)
			c.Kill()
		}
		if m.Source == "/no/such/dir" && !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
