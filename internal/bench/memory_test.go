package main

import (
	"os"
	"testing"
)

func TestParseParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want int
		err  string
	}{
		"parent":         {"13251 (sh) R 13245 13245 1 0", 13245, ""},
		"name like ours": {"7 (a (b) c) S 1 7 7 0", 1, ""},
		"short":          {"7 (sh) S", 0, "too short"},
		"no name":        {"7 sh S 1 7 7 0", 0, "too short"},
		"no number":      {"7 (sh) S x 7", 0, "invalid syntax"},
	} {
		got, err := parseParent([]byte(c.text))
		if got != c.want || !says(err, c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestDescends(t *testing.T) {
	t.Parallel()
	// 9's parent ended before it was looked at.
	parents := map[int]int{1: 0, 5: 1, 6: 5, 7: 6, 8: 1, 9: 20}
	for pid, want := range map[int]bool{5: true, 6: true, 7: true, 8: false, 9: false, 1: false} {
		if got := descends(parents, pid, 5); got != want {
			t.Errorf("%d below 5: %t, want %t", pid, got, want)
		}
	}
}

// A child's memory counts, and ends with it.
func TestMemoryOfTree(t *testing.T) {
	alone, err := memoryNow(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if alone.processes < 1 || alone.kernel < 1 || alone.available < 1 {
		t.Errorf("this process alone: %+v", alone)
	}
	s := newStage(t)
	c, err := s.start(nil, "/bin/sh", "-c", "echo up; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.expect("up"); err != nil {
		t.Fatal(err)
	}
	parents, err := parentsOfAll()
	if err != nil || parents[c.pid] != os.Getpid() || !descends(parents, c.pid, os.Getpid()) {
		t.Errorf("parent of the child is %d, %v, want %d", parents[c.pid], err, os.Getpid())
	}
	if pss, err := memoryOf(c.pid); err != nil || pss <= 0 || pss > 100 {
		t.Errorf("a shell has %v MB, %v", pss, err)
	}
	if _, err := memoryOf(-1); err == nil {
		t.Error("memory of no process, want an error")
	}
	if _, err := machine("MemAvailable", "MemNone"); !says(err, "no MemNone") {
		t.Errorf("error %v", err)
	}
}
