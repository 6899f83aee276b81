package view

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxSeconds is more than a run takes, maxBuckets more than it is counted in.
const (
	maxSeconds = 1e7
	maxBuckets = 1e5
)

// ParseRun reads a timeline.json, which may have been edited. A run that it returns
// without an error can be drawn.
func ParseRun(data []byte) (run RecordedRun, err error) {
	if err = json.Unmarshal(data, &run); err == nil {
		err = run.check()
	}
	if err != nil {
		return RecordedRun{}, fmt.Errorf("read the timeline: %w", err)
	}
	return run, nil
}

func (r *RecordedRun) check() error {
	var errs []error
	if r.Scenario == "" || r.Begun.IsZero() {
		errs = append(errs, errors.New("it names no scenario and no time: it is no timeline of localecs"))
	}
	bad := 0
	times := []float64{r.Seconds}
	for _, list := range [][]RecordedStep{r.Steps, r.Faults, r.Phases} {
		for _, s := range list {
			times = append(times, s.From, s.To, s.To-s.From)
		}
	}
	for _, e := range r.Events {
		times = append(times, e.At)
	}
	for _, t := range r.Tasks {
		for _, e := range t.Events {
			times = append(times, e.At)
		}
		if t.LastServed != nil {
			times = append(times, *t.LastServed)
		}
	}
	for _, at := range times {
		if !(at >= 0 && at <= maxSeconds) {
			bad++
		}
	}
	if bad > 0 {
		errs = append(errs, fmt.Errorf("%d times in it are not between 0 and %g s", bad, maxSeconds))
	}
	return errors.Join(append(errs, r.Requests.check(r.Tasks))...)
}

func (r RecordedRequests) check(tasks []RecordedTask) error {
	n := len(r.Answered)
	if n != len(r.Lost) || n != len(r.SlowestMS) || n > maxBuckets {
		return fmt.Errorf("requests: want as many answered as lost and slowest_ms, and no more than %g", maxBuckets)
	}
	for _, t := range tasks {
		n = max(n, len(t.Served))
	}
	if n > maxBuckets || n > 0 && !(r.BucketSeconds >= 0.001 && float64(n)*r.BucketSeconds <= 2*maxSeconds) {
		return fmt.Errorf("requests: %d buckets of %g s", n, r.BucketSeconds)
	}
	return nil
}
