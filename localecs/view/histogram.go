package view

import (
	"fmt"
	"math"
)

// servedIn reports whether answers named the task in a phase.
func servedIn(r RecordedRequests, t RecordedTask, p Phase) bool {
	for i, n := range t.Served {
		if at := float64(i) * r.BucketSeconds; n > 0 && at+r.BucketSeconds >= p.From && at <= p.To {
			return true
		}
	}
	return false
}

func lastServed(t RecordedTask, p Phase) string {
	switch {
	case t.LastServed == nil:
		return ""
	case *t.LastServed < p.Zero:
		return "last before T0"
	}
	return "last " + p.since(*t.LastServed)
}

// requested reports whether there was traffic.
func requested(r RecordedRequests, from, to float64) bool {
	answered, lost := r.between(from, to)
	return answered+lost > 0
}

func requestsNote(r RecordedRequests, from, to float64) string {
	answered, lost := r.between(from, to)
	return fmt.Sprintf("%d ok, %d lost", answered, lost)
}

// histogram draws when requests ended: the answered ones, and on top the lost ones. Of
// requests without Lost and SlowestMS only the answered ones are known.
func (d *diagram) histogram(name, note string, r RecordedRequests) {
	d.background(histHeight, "traffic", name, note)
	bins, peak := d.bins(r)
	base, room := d.y+histHeight-2, float64(histHeight-5)
	for _, b := range bins {
		title := fmt.Sprintf("%.1f to %.1f s: %d answered", b.from, b.to, b.answered)
		if r.Lost != nil {
			title += fmt.Sprintf(", %d lost, slowest %d ms", b.lost, b.slowest)
		}
		x1, x2 := d.at(b.from), d.at(b.to)
		good, bad := room*b.rate(b.answered)/peak, room*b.rate(b.lost)/peak
		if b.answered > 0 {
			good = max(good, 2)
			d.Rect(x1, base-good, x2-x1, good, "s answered", title)
		}
		if b.lost > 0 {
			bad = max(bad, 5) // a single one must be visible
			d.Rect(x1, max(d.y, base-good-bad), max(x2-x1, 3), bad, "s lost", title)
		}
	}
	d.y += histHeight
}

// bin is some buckets, put together until they are at least binWidth wide.
type bin struct {
	from, to                float64
	answered, lost, slowest int
}

const binWidth = 3

func (b bin) rate(count int) float64 { return float64(count) / (b.to - b.from) }

func (d *diagram) bins(r RecordedRequests) (bins []bin, peak float64) {
	var b bin
	for i := max(0, int(math.Floor(d.from/r.BucketSeconds))); i < len(r.Answered) &&
		float64(i)*r.BucketSeconds < d.to; i++ {
		if b.to == 0 {
			b.from = float64(i) * r.BucketSeconds
		}
		b.to = float64(i+1) * r.BucketSeconds
		b.answered += r.Answered[i]
		if r.Lost != nil {
			b.lost, b.slowest = b.lost+r.Lost[i], max(b.slowest, r.SlowestMS[i])
		}
		if d.at(b.to)-d.at(b.from) >= binWidth || i+1 == len(r.Answered) {
			bins = append(bins, b)
			peak = max(peak, b.rate(b.answered)+b.rate(b.lost))
			b = bin{}
		}
	}
	return bins, max(peak, 1e-9)
}
