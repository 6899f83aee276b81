package retry

import (
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// remind is how often a failure that lasts is logged as a warning.
const remind = 10 * time.Second

// report is the log of one operation with its retries: WARN for each cause of
// failure, and every 10 s while it lasts; DEBUG for the other failures; INFO for a
// success after a failure.
type report struct {
	log   hclog.Logger
	what  string
	start time.Time

	warned map[string]time.Time // by cause
}

func (r *report) failed(attempt int, pause time.Duration, err error) {
	now := time.Now()
	log := r.log.Debug
	c := cause(err)
	if last, warned := r.warned[c]; !warned || now.Sub(last) >= remind {
		r.warned[c] = now
		log = r.log.Warn
	}
	log(r.what+" failed, retrying", logkey.Attempt, attempt, logkey.Elapsed, now.Sub(r.start).Round(time.Millisecond),
		logkey.RetryIn, pause.Round(time.Millisecond), logkey.Error, err)
}

func (r *report) succeeded(attempt int) {
	if attempt > 1 {
		r.log.Info(r.what+" succeeded after retries", logkey.Attempt, attempt, logkey.Elapsed, time.Since(r.start).Round(time.Millisecond))
	}
}

// cause is the text of an error without the words that differ between attempts
// that fail in the same way: addresses with the local port, request IDs.
func cause(err error) string {
	words := strings.Fields(err.Error())
	kept := words[:0]
	for _, w := range words {
		if len(w) <= 4 || !strings.ContainsAny(w, "0123456789") {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}
