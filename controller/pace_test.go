package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
)

func TestPace(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	gone := deleted("token", "stopped", 1)
	again := func(at ...time.Duration) (p Plan) {
		for _, a := range at {
			p.Kept = append(p.Kept, RetainedTask{Again: a})
		}
		return p
	}
	for _, tt := range []struct {
		name   string
		before time.Duration
		r      Report
		err    error
		want   time.Duration
	}{
		{"nothing to do", 10 * time.Second, Report{}, nil, 15 * time.Second},
		{"still nothing", 15 * time.Second, Report{}, nil, 22500 * time.Millisecond},
		{"for long", 29 * time.Second, Report{}, nil, 30 * time.Second},
		{"deleted", 30 * time.Second, Report{Deleted: gone}, nil, 10 * time.Second},
		{"could not delete", 30 * time.Second, Report{Failed: make([]Failed, 1)}, nil, 10 * time.Second},
		{"soon to decide", 30 * time.Second, Report{Plan: again(12 * time.Second)}, nil, 12 * time.Second},
		{"two to decide", 30 * time.Second, Report{Plan: again(3*time.Minute, 0, 12*time.Second, time.Minute)}, nil,
			12 * time.Second},
		{"at once to decide", 30 * time.Second, Report{Plan: again(time.Second)}, nil, 10 * time.Second},
		{"late to decide", 20 * time.Second, Report{Plan: again(time.Hour)}, nil, 30 * time.Second},
		{"throttled", 10 * time.Second, Report{AWS: awsutil.CallCounts{Throttles: 1}, Deleted: gone}, nil,
			20 * time.Second},
		{"throttled for long", 20 * time.Second, Report{AWS: awsutil.CallCounts{Throttles: 1}}, nil, 30 * time.Second},
		{"throttled until it failed", 20 * time.Second, Report{AWS: awsutil.CallCounts{Throttles: 5}}, fault,
			15 * time.Second},
		{"failed", 30 * time.Second, Report{}, fault, 15 * time.Second},
		{"failed for long", 15 * time.Second, Report{}, fault, 15 * time.Second},
		{"good again after trouble", 15 * time.Second, Report{}, nil, 22500 * time.Millisecond},
		{"many tasks", 10 * time.Second, Report{AWS: awsutil.CallCounts{Calls: 100}, Deleted: gone}, nil,
			20 * time.Second},
		{"very many tasks", 60 * time.Second, Report{AWS: awsutil.CallCounts{Calls: 1000}}, fault, 200 * time.Second},
	} {
		o := Options{Interval: 10 * time.Second, Rate: 5}
		if got := o.pauseAfter(tt.before, tt.r, tt.err); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestPaceOfFailuresFollowsTheInterval: a short one backs off, a long one stays.
func TestPaceOfFailuresFollowsTheInterval(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for interval, want := range map[time.Duration][]time.Duration{
		time.Second: {2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second},
		time.Minute: {time.Minute, time.Minute},
	} {
		o, pause := Options{Interval: interval, Rate: 5}, interval
		for i, want := range want {
			if pause = o.pauseAfter(pause, Report{AWS: awsutil.CallCounts{Calls: 1}}, fault); pause != want {
				t.Errorf("interval %s, failure %d: pause %s, want %s", interval, i+1, pause, want)
			}
		}
	}
}

// TestPaceForgetsTheBudget: a first pass takes twice the calls of a later one,
// which does not stretch the pauses after that.
func TestPaceForgetsTheBudget(t *testing.T) {
	t.Parallel()
	o := Options{Interval: 10 * time.Second, Rate: 5}
	pause := o.pauseAfter(10*time.Second, Report{AWS: awsutil.CallCounts{Calls: 200}}, nil)
	if pause != 40*time.Second {
		t.Errorf("after the first pass: %s", pause)
	}
	if pause = o.pauseAfter(pause, Report{AWS: awsutil.CallCounts{Calls: 100}}, nil); pause != 30*time.Second {
		t.Errorf("after the second: %s", pause)
	}
}
