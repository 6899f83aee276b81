package controller

import "time"

const (
	// quiet is the longest pause of a cluster with nothing to do, or of one whose
	// passes succeed although AWS throttles them, in intervals.
	quiet = 3
	// failing is the longest pause between failed passes, unless the interval is
	// longer. It bounds how late clean-up resumes after an outage. AWS can bear it: a
	// cluster has one leader, and a pass that is refused is one call, or as many as
	// the SDK's own retries allow.
	failing = 15 * time.Second
)

// pace is the pause before the next pass.
type pace struct {
	Options
	pause time.Duration
}

// after is the pace after a pass. Something to do gives the interval; nothing to do
// lengthens the pause by half each time; throttling and failures double it. A pass
// never follows sooner than its AWS calls take out of the budget, so that half of the
// budget is left for others.
func (p pace) after(r Report, err error) pace {
	switch {
	case err != nil:
		p.pause = min(2*p.pause, max(failing, p.Interval))
	case r.AWS.Throttles > 0:
		p.pause = min(2*p.pause, quiet*p.Interval)
	case len(r.Deleted)+len(r.Failed) > 0:
		p.pause = p.Interval
	default:
		p.pause = min(p.pause*3/2, quiet*p.Interval)
		for _, k := range r.Kept {
			if k.Again > 0 {
				p.pause = max(p.Interval, min(p.pause, k.Again))
			}
		}
	}
	p.pause = max(p.pause, time.Duration(float64(r.AWS.Calls)/p.Rate*float64(time.Second)))
	return p
}
