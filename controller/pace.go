package controller

import "time"

// How the pause between two passes follows what they find, in intervals.
const (
	// quiet is the longest without trouble, with nothing to do.
	quiet = 3
	// trouble is the longest while AWS throttles or passes fail.
	trouble = 6
	// jitter is by how much a pause may be longer than planned: two controllers
	// of one account do not stay in step.
	jitter = 1.2
)

// pace is how long to wait before the next pass.
type pace struct {
	Options
	pause time.Duration
}

// after is the pace after a pass. Something to do gives the interval, nothing to
// do half as much again each time, up to three intervals; a throttle or a failure
// doubles it, up to six. A pass never follows sooner than its AWS calls take out
// of the budget, so that half of that is left for others.
func (p pace) after(r Result, err error) pace {
	switch {
	case err != nil || r.Throttles > 0:
		p.pause = min(2*p.pause, trouble*p.Interval)
	case len(r.Deleted) > 0 || r.Failed > 0:
		p.pause = p.Interval
	default:
		p.pause = min(p.pause*3/2, quiet*p.Interval)
		if r.Again > 0 {
			p.pause = max(p.Interval, min(p.pause, r.Again))
		}
	}
	p.pause = max(p.pause, p.spent(r.AWSCalls))
	return p
}

// Longest is the longest pause between two passes of a cluster whose passes take
// so many AWS calls, while there is no trouble.
func (o Options) Longest(calls int) time.Duration {
	return time.Duration(jitter * float64(max(quiet*o.Interval, o.spent(calls))))
}

// spent is what AWS calls take out of the budget.
func (o Options) spent(calls int) time.Duration {
	return time.Duration(float64(calls) / o.Rate * float64(time.Second))
}
