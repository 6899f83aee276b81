package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// find returns the host path of a program: variables filled in, relative paths from
// dir. The error has a remedy for a program that cannot be run.
func find(host, dir string, vars map[string]string) (string, error) {
	path, used, err := expand(host, dir, vars)
	if err != nil {
		return "", err
	}
	err = executable(path)
	switch {
	case err != nil && len(used) > 0:
		return "", fmt.Errorf("%w (from %s): %s", err, host, remedy(used[0]))
	case err != nil:
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// expand fills variables in, and returns the used ones. Relative paths begin at dir.
func expand(host, dir string, vars map[string]string) (path string, used []string, err error) {
	path, used, err = fill(host, vars)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path, used, err
}

// fill fills variables in, and returns the used ones.
func fill(host string, vars map[string]string) (path string, used []string, err error) {
	var missing []error
	path = os.Expand(host, func(name string) string {
		value, ok := vars[name]
		if !ok {
			missing = append(missing, fmt.Errorf("needs ${%s}, which was not found: %s", name, remedy(name)))
		}
		used = append(used, name)
		return value
	})
	return path, used, errors.Join(missing...)
}

// remedy describes how a variable gets its value.
func remedy(name string) string {
	flag := fmt.Sprintf("-var %s=PATH", name)
	switch name {
	case "consul", "envoy":
		return "run 'make tools', put " + name + " on PATH, or give " + flag
	case "bin":
		return "run 'make build', or give -var bin=DIRECTORY"
	}
	return "give " + flag
}

// executable returns why a file cannot be a program.
func executable(path string) error {
	st, err := os.Stat(path)
	var pathError *fs.PathError
	switch {
	case errors.As(err, &pathError):
		return fmt.Errorf("%s: %w", path, pathError.Err)
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s is a directory, not a program", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a program", path)
	case st.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x makes it so", path)
	}
	return nil
}
