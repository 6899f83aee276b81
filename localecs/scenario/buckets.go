package scenario

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// A timeline has at most maxBuckets. When there are more, each two become one: a run of
// two minutes has buckets of 0.1 s, one of an hour of 3.2 s.
const (
	maxBuckets  = 1200
	firstBucket = 0.1
)

// buckets count requests by time.
type buckets struct {
	counts view.RecordedRequests
}

func newBuckets() buckets {
	return buckets{counts: view.RecordedRequests{BucketSeconds: firstBucket}}
}

// add counts a request that has ended.
func (b *buckets) add(at float64, q trafficRequest) {
	i := int(at / b.counts.BucketSeconds)
	for ; i >= maxBuckets; i = int(at / b.counts.BucketSeconds) {
		b.widen()
	}
	b.counts.Answered, b.counts.Lost, b.counts.SlowestMS = reach(b.counts.Answered, i), reach(b.counts.Lost, i),
		reach(b.counts.SlowestMS, i)
	if q.Err == nil {
		b.counts.Answered[i]++
	} else {
		b.counts.Lost[i]++
	}
	b.counts.SlowestMS[i] = max(b.counts.SlowestMS[i], int(q.End.Sub(q.Start).Milliseconds()))
}

// reach extends a list to bucket i.
func reach(list []int, i int) []int {
	for len(list) <= i {
		list = append(list, 0)
	}
	return list
}

// widen merges each two buckets.
func (b *buckets) widen() {
	sum := func(a, b int) int { return a + b }
	b.counts.BucketSeconds *= 2
	b.counts.Answered, b.counts.Lost = halved(b.counts.Answered, sum), halved(b.counts.Lost, sum)
	b.counts.SlowestMS = halved(b.counts.SlowestMS, func(a, b int) int { return max(a, b) })
}

func halved(list []int, both func(a, b int) int) []int {
	var half []int
	for pair := range slices.Chunk(list, 2) {
		if len(pair) == 1 {
			pair = append(pair, 0)
		}
		half = append(half, both(pair[0], pair[1]))
	}
	return half
}

// counted returns a copy of the counts.
func (b *buckets) counted() view.RecordedRequests {
	return view.RecordedRequests{
		BucketSeconds: b.counts.BucketSeconds, Answered: nonNil(b.counts.Answered),
		Lost: nonNil(b.counts.Lost), SlowestMS: nonNil(b.counts.SlowestMS),
	}
}

// names reports whether an answer names a task: by its ID, its address, or the name of
// a host with that address.
func names(answer string, t *view.RecordedTask) bool {
	if t.ID == "" {
		return false
	}
	return strings.Contains(answer, t.ID) || hasWhole(answer, t.Address) ||
		hasWhole(answer, "ip-"+strings.ReplaceAll(t.Address, ".", "-"))
}

// hasWhole reports whether text has the word with no digit after it.
func hasWhole(text, word string) bool {
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		rest = rest[i+len(word):]
		if rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
	}
}
