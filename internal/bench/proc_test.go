package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want int64
		err  string
	}{
		"found":        {"Name:\tenvoy\nVmHWM:\t   20000 kB\nVmRSS:\t   11280 kB\nRssAnon:\t    4000 kB\n", 11280, ""},
		"longer key":   {"VmRSSx:\t5 kB\nVmRSS:\t7 kB\n", 7, ""},
		"not there":    {"Name:\tkthreadd\n", 0, "no VmRSS"},
		"another unit": {"VmRSS:\t5 MB\n", 0, "want kB"},
		"no number":    {"VmRSS:\tmuch kB\n", 0, "invalid syntax"},
		"empty":        {"", 0, "no VmRSS"},
	} {
		got, err := parseStatus([]byte(c.text), "VmRSS")
		if got != c.want || !says(err, c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want time.Duration
		err  string
	}{
		{"610872597 264850 8\n", 610872597 * time.Nanosecond, ""},
		{"1 2\n", 0, "want three numbers"},
		{"x 2 3\n", 0, "invalid syntax"},
	} {
		got, err := parseSchedstat([]byte(c.text))
		if got != c.want || !says(err, c.err) {
			t.Errorf("%q: %s, %v, want %s, %q", c.text, got, err, c.want, c.err)
		}
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want time.Duration
		err  string
	}{
		"utime and stime": {
			"13251 (sh) R 13245 13245 1 0 -1 4194304 116 0 0 0 61 2 7 9 20 0 1 0 3456 2904064 388",
			630 * time.Millisecond, "",
		},
		"name like ours": {"7 (a (b) c) S 1 7 7 0 -1 4194304 116 0 0 0 1 0 0 0 20 0 1 0", 10 * time.Millisecond, ""},
		"short":          {"7 (sh) S 1 7", 0, "too short"},
		"no name":        {"7 sh S 1 7 7 0 -1 4194304 116 0 0 0 1 0 0 0 20 0 1 0", 0, "too short"},
		"no number":      {"7 (sh) S 1 7 7 0 -1 4194304 116 0 0 0 x 0 0 0 20 0 1 0", 0, "invalid syntax"},
	} {
		got, err := parseStat([]byte(c.text))
		if got != c.want || !says(err, c.err) {
			t.Errorf("%s: %s, %v, want %s, %q", name, got, err, c.want, c.err)
		}
	}
}

func FuzzParseProc(f *testing.F) {
	f.Add([]byte("VmRSS:\t   11280 kB\n"))
	f.Add([]byte("610872597 264850 8\n"))
	f.Add([]byte("7 (a (b) c) S 1 7 7 0 -1 4194304 116 0 0 0 1 0 0 0 20 0 1 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseStatus(data, "VmRSS"); err == nil && !strings.Contains(string(data), "VmRSS:") {
			t.Error("a value without its key")
		}
		if v, err := parseSchedstat(data); err != nil && v != 0 {
			t.Errorf("value %s with error %v", v, err)
		}
		if v, err := parseStat(data); err != nil && v != 0 {
			t.Errorf("value %s with error %v", v, err)
		}
	})
}

// The two sources of CPU time agree about this process, as far as stat's steps
// go.
func TestOwnProcess(t *testing.T) {
	t.Parallel()
	pid := os.Getpid()
	memory, err := rss(pid)
	if err != nil {
		t.Fatal(err)
	}
	if memory < 1 || memory > 1000 {
		t.Errorf("own memory %v MB, want 1 to 1000", memory)
	}
	before, err := cpuTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	coarse, err := statCPU(pid)
	if err != nil {
		t.Fatal(err)
	}
	var after time.Duration
	testkit.Eventually(t, "CPU time grows", func() bool { // by this very loop
		after, err = cpuTime(pid)
		return err != nil || after > before
	})
	if err != nil {
		t.Fatal(err)
	}
	if slack := time.Second; coarse < before-slack || coarse > after+slack {
		t.Errorf("stat says %s, schedstat %s before and %s after", coarse, before, after)
	}
	if _, err := rss(-1); err == nil {
		t.Error("memory of no process, want an error")
	}
	if _, err := cpuTime(-1); err == nil {
		t.Error("CPU time of no process, want an error")
	}
}

// says reports whether the error holds the text; no text wants no error.
func says(err error, text string) bool {
	if text == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), text)
}
