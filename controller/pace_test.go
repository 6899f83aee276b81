package controller

import (
	"errors"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	gone := map[Deletion]int{{"token", "stopped"}: 1}
	for _, tt := range []struct {
		name   string
		before time.Duration
		r      Result
		err    error
		want   time.Duration
	}{
		{"nothing to do", 10 * time.Second, Result{}, nil, 15 * time.Second},
		{"still nothing", 15 * time.Second, Result{}, nil, 22500 * time.Millisecond},
		{"for long", 29 * time.Second, Result{}, nil, 30 * time.Second},
		{"deleted", 30 * time.Second, Result{Deleted: gone}, nil, 10 * time.Second},
		{"could not delete", 30 * time.Second, Result{Failed: 1}, nil, 10 * time.Second},
		{"soon to decide", 30 * time.Second, Result{Again: 12 * time.Second}, nil, 12 * time.Second},
		{"at once to decide", 30 * time.Second, Result{Again: time.Second}, nil, 10 * time.Second},
		{"late to decide", 20 * time.Second, Result{Again: time.Hour}, nil, 30 * time.Second},
		{"throttled", 10 * time.Second, Result{Throttles: 1, Deleted: gone}, nil, 20 * time.Second},
		{"throttled on", 40 * time.Second, Result{Throttles: 1}, nil, 60 * time.Second},
		{"failed", 30 * time.Second, Result{}, fault, 60 * time.Second},
		{"failed for long", 60 * time.Second, Result{}, fault, 60 * time.Second},
		{"good again after trouble", 60 * time.Second, Result{}, nil, 30 * time.Second},
		{"many tasks", 10 * time.Second, Result{AWSCalls: 100, Deleted: gone}, nil, 20 * time.Second},
		{"very many tasks", 60 * time.Second, Result{AWSCalls: 1000}, fault, 200 * time.Second},
	} {
		p := pace{Options: Options{Interval: 10 * time.Second, Rate: 5}, pause: tt.before}
		if got := p.after(tt.r, tt.err).pause; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestPaceForgetsTheBudget: a first pass takes twice the calls of a later one,
// which does not stretch the pauses after that.
func TestPaceForgetsTheBudget(t *testing.T) {
	t.Parallel()
	p := pace{Options: Options{Interval: 10 * time.Second, Rate: 5}, pause: 10 * time.Second}
	p = p.after(Result{AWSCalls: 200}, nil)
	if p.pause != 40*time.Second {
		t.Errorf("after the first pass: %s", p.pause)
	}
	if p = p.after(Result{AWSCalls: 100}, nil); p.pause != 30*time.Second {
		t.Errorf("after the second: %s", p.pause)
	}
}

func TestLongest(t *testing.T) {
	t.Parallel()
	o := Options{Interval: 10 * time.Second, Rate: 5}
	if got := o.Longest(2); got != 36*time.Second {
		t.Errorf("few tasks: %s", got)
	}
	if got := o.Longest(220); got != 52800*time.Millisecond {
		t.Errorf("many tasks: %s", got)
	}
}
