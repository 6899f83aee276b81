package testkit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// UserRole is the role that AsUser's command lines play: RunRole gets it with
// PlayUser.
const UserRole = "as-user"

// UserID is the user "tester" that AsUser makes, and his group.
const UserID = 61234

// AsUser returns the command line with which a program runs as a user to whom subIDs in /etc/subuid and /etc/subgid
// belong ("100000:65536"; empty for none). Only that program sees this user and those files. It takes root.
func AsUser(t testing.TB, subIDs string, args ...string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, "becoming another user needs root")
	}
	etc := PublicDir(t)
	files := map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0::/:/bin/sh\ntester:x:%d:%d::/:/bin/sh\n", UserID, UserID),
		"group":  fmt.Sprintf("root:x:0:\ntester:x:%d:\n", UserID),
		"subuid": "", "subgid": "", "resolv.conf": "",
	}
	if subIDs != "" {
		files["subuid"], files["subgid"] = "tester:"+subIDs+"\n", "tester:"+subIDs+"\n"
	}
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		files["ld.so.cache"] = string(cache)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return SelfArgs(UserRole, append([]string{etc}, args...)...)
}

// PublicDir returns a temporary directory that every user may read, unlike that of testing.T.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// PublicCopy copies a program to where every user may execute it, with its
// set-uid bit.
func PublicCopy(t testing.TB, dir, program string) string {
	t.Helper()
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, filepath.Base(program))
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := from.Stat()
	if err == nil {
		err = os.Chmod(path, 0o755|st.Mode()&os.ModeSetuid)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// PlayUser becomes the user of AsUser, with his /etc, and executes the program.
func PlayUser(args []string) int {
	runtime.LockOSThread()
	err := hideEtc(args[0])
	if err == nil {
		err = becomeUser(UserID)
	}
	if err == nil {
		err = syscall.Exec(args[1], args[1:], os.Environ())
	}
	fmt.Fprintf(os.Stderr, "run %v as a user: %v\n", args, err)
	return 1
}

// hideEtc puts dir in the place of /etc, for this thread only.
func hideEtc(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount(dir, "/etc", "", unix.MS_BIND, "")
}

// becomeUser changes this thread, which is the one that executes the program.
func becomeUser(id uintptr) error {
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, id, id, id}, {unix.SYS_SETRESUID, id, id, id},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}
