package runtime

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds a program the way a container engine does, in the file system
// of the calling thread. Errors read as the engine's.
func lookPath(file string, env []string) (string, error) {
	if strings.Contains(file, "/") {
		if err := executable(file); err != nil {
			return "", fmt.Errorf("exec: %q: stat %s: %w", file, file, err)
		}
		return file, nil
	}
	for dir := range strings.SplitSeq(lookup(env, "PATH"), ":") {
		dir = cmp.Or(dir, ".")
		if p := path.Join(dir, file); file != "" && executable(p) == nil {
			return p, nil
		}
	}
	return "", &notFoundError{file}
}

// notFoundError carries the number of an error that the system was not asked for.
type notFoundError struct{ file string }

func (e *notFoundError) Error() string {
	return fmt.Sprintf("exec: %q: executable file not found in $PATH", e.file)
}

func (e *notFoundError) Unwrap() error { return unix.ENOENT }

func executable(p string) error {
	st, err := os.Stat(p)
	var pathError *fs.PathError
	switch {
	case errors.As(err, &pathError):
		return pathError.Err
	case err != nil:
		return err
	case st.IsDir():
		return unix.EISDIR
	case st.Mode()&0o111 == 0:
		return unix.EACCES
	}
	return nil
}

// lookup returns the last value of a variable: later entries win.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// explainExec returns what a failed exec means. "No such file" for a file that
// exists is about its interpreter or loader, which is easily missed.
func explainExec(file, path string, err error) error {
	if err == nil {
		return nil
	}
	why := ""
	switch {
	case errors.Is(err, unix.ENOENT):
		why = loader(path)
	case errors.Is(err, unix.ENOEXEC):
		why = "neither a program for this machine nor a script that begins with #!: "
	}
	return fmt.Errorf("exec: %q: %s%w", file, why, err)
}

func loader(path string) string {
	if interpreter := scriptInterpreter(path); interpreter != "" {
		return "the script's interpreter " + interpreter + " is not in the image: "
	}
	if interpreter, err := Interpreter(path); err == nil && interpreter != "" {
		return "the program's dynamic loader " + interpreter + " is not in the image: "
	}
	return ""
}

func scriptInterpreter(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	words, ok := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(words); ok && len(fields) > 0 {
		return fields[0]
	}
	return ""
}
