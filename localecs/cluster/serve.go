package cluster

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// outcome is the combined effect of faults on a request.
type outcome struct {
	condition iam.Condition
	waits     []*activeFault // hangs, then slow ones
	status    int
	wrong     string
	cut       bool
}

// combine returns the combined effect of faults, see Faults.
func combine(faults []*activeFault) outcome {
	var o outcome
	var slow []*activeFault
	for _, r := range faults {
		o.condition.Ahead += r.Skew
		o.condition.NoTags = o.condition.NoTags || r.NoTags
		o.cut = o.cut || r.Cut
		switch {
		case r.Hang:
			o.waits = append(o.waits, r)
		case r.Slow > 0:
			slow = append(slow, r)
		}
		o.status = cmp.Or(o.status, r.Status)
		o.wrong = cmp.Or(o.wrong, r.Wrong)
	}
	o.waits = append(o.waits, slow...)
	return o
}

// serve answers a request, with the effects of the faults that apply to it.
func (f *Faults) serve(p place, next http.Handler, w http.ResponseWriter, r *http.Request) {
	faults := f.matching(p.name, p.task)
	if len(faults) == 0 {
		next.ServeHTTP(w, r)
		return
	}
	o := combine(faults)
	if len(o.waits) > 0 {
		delay(w, r, o.waits)
	}
	if ahead := o.condition.Ahead; ahead != 0 {
		// SDKs learn from it that their own clock is off.
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}
	r = iam.With(r, o.condition)
	if o.status == 0 && o.wrong == "" && !o.cut {
		next.ServeHTTP(w, r)
		return
	}
	o.answer(p, next, r).send(w, o.cut)
}

const maxBody = 1 << 20

// delay waits as long as the faults delay the answer, but not beyond their end. It
// ends the connection without an answer when the caller has disconnected.
//
// The server's own time limits are lifted: they would end the connection, or the
// answer, of a caller who is still connected. The body is read before, since the
// server notices that the caller has disconnected only then.
func delay(w http.ResponseWriter, r *http.Request, faults []*activeFault) {
	start := time.Now()
	limits := http.NewResponseController(w)
	_ = limits.SetReadDeadline(time.Time{}) // only a connection has limits
	_ = limits.SetWriteDeadline(time.Time{})
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for _, f := range faults {
		var late <-chan time.Time
		if !f.Hang {
			late = time.After(f.Slow - time.Since(start))
		}
		select {
		case <-late:
		case <-f.over:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// answer is the whole answer, which a cut may shorten.
func (o outcome) answer(p place, next http.Handler, r *http.Request) *recorded {
	rec := &recorded{header: http.Header{}}
	switch {
	case o.status != 0:
		p.fail(rec, o.status)
		return rec
	case o.wrong == chaos.Page:
		rec.page()
		return rec
	case o.wrong == chaos.Error:
		p.fail(rec, http.StatusInternalServerError)
		rec.status = http.StatusOK
		return rec
	}
	next.ServeHTTP(rec, r)
	switch o.wrong {
	case chaos.Empty:
		rec.empty()
	case chaos.Truncated:
		rec.body = rec.body[:len(rec.body)/2]
	}
	return rec
}
