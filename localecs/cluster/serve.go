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
	delays    []*activeFault // hangs, then slow ones
	status    int
	wrong     string
	cut       bool
}

// combine returns the combined effect of faults, see Faults.
func combine(faults []*activeFault) outcome {
	var o outcome
	var slow []*activeFault
	for _, r := range faults {
		o.condition.Ahead += r.fault.Skew
		o.condition.NoTags = o.condition.NoTags || r.fault.NoTags
		o.cut = o.cut || r.fault.Cut
		switch {
		case r.fault.Hang:
			o.delays = append(o.delays, r)
		case r.fault.Slow > 0:
			slow = append(slow, r)
		}
		o.status = cmp.Or(o.status, r.fault.Status)
		o.wrong = cmp.Or(o.wrong, r.fault.Wrong)
	}
	o.delays = append(o.delays, slow...)
	return o
}

// serve answers a request, with the effects of the faults that apply to it.
func (f *Faults) serve(e endpoint, next http.Handler, w http.ResponseWriter, r *http.Request) {
	faults := f.matching(e.name, e.task)
	if len(faults) == 0 {
		next.ServeHTTP(w, r)
		return
	}
	o := combine(faults)
	if len(o.delays) > 0 {
		delay(w, r, o.delays)
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
	o.answer(e, next, r).send(w, o.cut)
}

const maxBody = 1 << 20

// delay waits as long as the faults delay the answer, but not beyond their end. It
// ends the connection without an answer when the caller has disconnected.
//
// The server's own time limits are lifted: they would end the connection, or the answer, of a caller who is still
// connected. The body is read before, since the server notices that the caller has disconnected only then.
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
		if !f.fault.Hang {
			late = time.After(f.fault.Slow - time.Since(start))
		}
		select {
		case <-late:
		case <-f.over:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// answer returns the complete answer, which a cut may shorten.
func (o outcome) answer(e endpoint, next http.Handler, r *http.Request) *recorded {
	rec := &recorded{header: http.Header{}}
	switch {
	case o.status != 0:
		e.fail(rec, o.status)
		return rec
	case o.wrong == chaos.Page:
		rec.page()
		return rec
	case o.wrong == chaos.Error:
		e.fail(rec, http.StatusInternalServerError)
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
