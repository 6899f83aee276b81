package retry

import (
	"testing"
	"time"
)

func TestBackoffDoubles(t *testing.T) {
	t.Parallel()
	b := Backoff{Base: time.Second, Max: 15 * time.Second}
	for range 2 {
		for _, seconds := range []time.Duration{1, 2, 4, 8, 15, 15} {
			ceiling := seconds * time.Second
			pause := b.Next()
			if pause < ceiling/2 {
				t.Errorf("paused %s, less than half of %s", pause, ceiling)
			}
			if pause > ceiling {
				t.Errorf("paused %s, more than %s", pause, ceiling)
			}
		}
		b.Reset()
	}
}
