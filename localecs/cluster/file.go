package cluster

import (
	"bufio"
	"fmt"
	"strings"
)

// parseFile reads an environment file. A line is NAME=value, split at the first
// "=" and taken as it is: no quotes, no trimming, no expansion. Lines that
// begin with "#", have no "=" or no name are skipped. Of two lines with one
// name the later wins. The error is about a line of 64 KiB or more.
func parseFile(text string) (map[string]string, error) {
	variables := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	n := 0
	for lines.Scan() {
		n++
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && name != "" && !strings.HasPrefix(name, "#") {
			variables[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("environment file, line %d: %w", n+1, err)
	}
	return variables, nil
}
