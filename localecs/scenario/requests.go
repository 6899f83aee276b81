package scenario

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// maxTold is how many lost requests get a line of their own.
const maxTold = 10

func (r *runner) startTraffic(ctx context.Context, t file.Traffic) error {
	url := fmt.Sprintf("http://%s/", net.JoinHostPort(r.task(t.Task).IP(), fmt.Sprint(t.Port)))
	var told atomic.Int64
	r.traffic = New(url, r.cluster.Dial, func(f Failure) {
		e := Event{Time: f.At, Kind: KindRequestFailed, Detail: f.Err, Text: "FAILED: " + f.Err}
		n := told.Add(1)
		if n == maxTold {
			e.Text += " (more are counted only)"
		}
		if n <= maxTold {
			r.tell(e)
		}
	})
	r.traffic.Each = func(q Request) {
		r.record.Request(q)
		if r.observer != nil {
			q.Answer = "" // it keeps all of them
			r.observer.Request(q)
		}
	}
	r.shown.Store(r.traffic)
	rate := fmt.Sprintf("%d requests a second to %s, no retries", t.Rate, url)
	// From the first answer on everything counts, in later phases too.
	if !r.reached[url] {
		start := time.Now()
		if err := r.traffic.AwaitFirst(ctx); err != nil {
			return fmt.Errorf("traffic: no answer from %s within %s: %w", url, FirstAnswerLimit, err)
		}
		r.reached[url] = true
		rate = fmt.Sprintf("first answer after %s; now %s", time.Since(start).Round(time.Millisecond), rate)
	}
	r.tell(Event{Kind: KindTrafficBegin, Task: t.Task, Address: url, Text: rate})
	r.traffic.Start(ctx, t.Rate)
	return nil
}

// endTraffic ends the phase of the traffic, if there is one, and judges it.
func (r *runner) endTraffic(e file.EndTraffic) {
	if r.traffic == nil {
		return
	}
	r.traffic.Stop()
	name := e.Name
	if name == "" {
		name = fmt.Sprintf("phase %d", len(r.phases)+1)
	}
	p := r.traffic.Phase(name, e.Limits())
	r.traffic = nil
	r.phases = append(r.phases, p)
	text := fmt.Sprintf("%s ended: %d answered, %d failed", p.Name, p.Answered, p.Failed)
	if problem := p.Problem(); problem != "" {
		r.fail("%s: %s", p.Name, problem)
		text += ": not as it must be"
	}
	r.tell(Event{Kind: KindTrafficEnd, Phase: p.Name, Text: text})
}
