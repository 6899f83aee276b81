package retry

import (
	"testing"
	"time"
)

func TestBackoffDoubles(t *testing.T) {
	t.Parallel()
	b := Backoff{Base: time.Second, Max: 15 * time.Second}
	for range 2 {
		for _, ceiling := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second} {
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
