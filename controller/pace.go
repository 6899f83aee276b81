package controller

import "time"

const (
	// quietIntervals is the longest pause of a cluster with nothing to do, or of one whose
	// passes succeed although AWS throttles them, in intervals.
	quietIntervals = 3
	// failingPause is the longest pause between failed passes, unless the interval is
	// longer. It bounds how late clean-up resumes after an outage. AWS can bear it: a
	// cluster has one leader, and a pass that is refused is one call, or as many as
	// the SDK's own retries allow.
	failingPause = 15 * time.Second
)

// pauseAfter returns the pause after a pass, which came after the pause before. Something to
// do gives the interval; nothing to do lengthens the pause by half each time; throttling
// and failures double it. A pass never follows sooner than its AWS calls take out of the
// budget, so that half of the budget is left for others.
func (o Options) pauseAfter(before time.Duration, r Report, err error) time.Duration {
	pause := o.Interval
	switch {
	case err != nil:
		pause = min(2*before, max(failingPause, o.Interval))
	case r.AWS.Throttles > 0:
		pause = min(2*before, quietIntervals*o.Interval)
	case len(r.Deleted)+len(r.Failed) == 0:
		pause = min(before*3/2, quietIntervals*o.Interval)
		for _, k := range r.Kept {
			if k.Again > 0 {
				pause = max(o.Interval, min(pause, k.Again))
			}
		}
	}
	return max(pause, time.Duration(float64(r.AWS.Calls)/o.Rate*float64(time.Second)))
}
