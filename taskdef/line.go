package taskdef

import (
	"strconv"
	"strings"
)

// Line returns the line of a path of the document, such as that of a violation, in the text that was read.
// For a value that is not there, it is the line of what contains it.
func (d *Document) Line(path string) int {
	n, line := d.Root, 1
	for _, key := range steps(path) {
		if i, err := strconv.Atoi(key); err == nil && n.IsList() {
			if i >= len(n.items) {
				return line
			}
			n = n.items[i]
		} else {
			n = n.Get(key)
		}
		if n == nil {
			return line
		}
		if n.line > 0 {
			line = n.line
		}
	}
	return line
}

// steps returns the keys and indexes of a path: $.a[0]["b.c"] has a, 0 and b.c.
func steps(path string) []string {
	var keys []string
	rest := strings.TrimPrefix(path, "$")
	for rest != "" {
		var key string
		switch {
		case strings.HasPrefix(rest, `["`):
			key, rest, _ = strings.Cut(rest[2:], `"]`)
		case rest[0] == '[':
			key, rest, _ = strings.Cut(rest[1:], "]")
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			key, rest = rest[:end], rest[end:]
		}
		keys = append(keys, key)
	}
	return keys
}
