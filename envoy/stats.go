package envoy

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseStats returns the counters and gauges of an answer of /stats in text form, by name. A line that is not
// "name: number" is an error; the others are returned with it.
func ParseStats(answer []byte) (map[string]uint64, error) {
	stats := map[string]uint64{}
	var failed error
	for line := range bytes.Lines(answer) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		n, err := strconv.ParseUint(string(value), 10, 64)
		switch {
		case err == nil:
			stats[string(name)] = n
		case failed == nil:
			failed = fmt.Errorf("%.100q is not a counter", line)
		}
	}
	return stats, failed
}
