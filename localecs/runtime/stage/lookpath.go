package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// LookPath finds a program the way a container engine does, in the file system
// of the calling thread. Errors read as the engine's.
func LookPath(file string, env []string) (string, error) {
	if strings.Contains(file, "/") {
		if err := executable(file); err != nil {
			return "", fmt.Errorf("exec: %q: stat %s: %w", file, file, err)
		}
		return file, nil
	}
	for dir := range strings.SplitSeq(lookup(env, "PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		if p := path.Join(dir, file); file != "" && executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", file)
}

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

// explainExec says what a failed exec means. "No such file" for a file that
// exists is about its interpreter, and costs people hours.
func explainExec(file, path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		if interpreter := scriptInterpreter(path); interpreter != "" {
			return fmt.Errorf("exec: %q: the script's interpreter %s is not in the image: %w", file, interpreter, err)
		}
	}
	return fmt.Errorf("exec: %q: %w", file, err)
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
