package metadata

import (
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	b := &buckets{byKey: map[bucketKey]*bucket{}}
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	count := func(key bucketKey, n int, now time.Time) (allowed int) {
		for range n {
			if b.allow(key, now) {
				allowed++
			}
		}
		return allowed
	}
	one, path, ip := bucketKey{"10.0.1.23", "/v4/a/task"}, bucketKey{"10.0.1.23", "/v4/b/task"}, bucketKey{
		"10.0.1.24", "/v4/a/task",
	}
	for _, step := range []struct {
		name  string
		key   bucketKey
		after time.Duration
		want  int
	}{
		{"burst", one, 0, 60},
		{"nothing left", one, 0, 0},
		{"another path", path, 0, 60},
		{"another client", ip, 0, 60},
		{"half a second", one, 500 * time.Millisecond, 20},
		{"full again, not more", one, 10 * time.Second, 60},
	} {
		if got := count(step.key, 100, now.Add(step.after)); got != step.want {
			t.Errorf("%s: %d of 100 allowed, want %d", step.name, got, step.want)
		}
	}
	later := bucketKey{"10.0.1.25", "/v4/a/task"}
	if got := count(later, 50, now.Add(time.Second)) + count(later, 1, now) +
		count(later, 100, now.Add(time.Second)); got != 60 {
		t.Errorf("%d allowed at once, want 60, when one of them looked at the clock before the others", got)
	}
	b.allow(one, now.Add(2*idle))
	if len(b.byKey) != 1 {
		t.Errorf("%d buckets after a long time, want the one in use", len(b.byKey))
	}
}
