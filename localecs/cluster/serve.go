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

type fate struct {
	condition iam.Condition
	waits     []*activeFault // hangs, then slow ones
	status    int
	wrong     string
	cut       bool
}

// fateOf puts the faults that strike together, see Faults.
func fateOf(struck []*activeFault) fate {
	var f fate
	var slow []*activeFault
	for _, r := range struck {
		f.condition.Ahead += r.Skew
		f.condition.NoTags = f.condition.NoTags || r.NoTags
		f.cut = f.cut || r.Cut
		switch {
		case r.Hang:
			f.waits = append(f.waits, r)
		case r.Slow > 0:
			slow = append(slow, r)
		}
		f.status = cmp.Or(f.status, r.Status)
		f.wrong = cmp.Or(f.wrong, r.Wrong)
	}
	f.waits = append(f.waits, slow...)
	return f
}

// serve lets the endpoint answer, or what strikes it.
func (f *Faults) serve(p place, next http.Handler, w http.ResponseWriter, r *http.Request) {
	struck := f.striking(p.name, p.task)
	if len(struck) == 0 {
		next.ServeHTTP(w, r)
		return
	}
	fate := fateOf(struck)
	if len(fate.waits) > 0 {
		waitOut(w, r, fate.waits)
	}
	if ahead := fate.condition.Ahead; ahead != 0 {
		// SDKs learn from it that their own clock is off.
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}
	r = iam.With(r, fate.condition)
	if fate.status == 0 && fate.wrong == "" && !fate.cut {
		next.ServeHTTP(w, r)
		return
	}
	fate.answer(p, next, r).send(w, fate.cut)
}

const maxBody = 1 << 20

// waitOut lasts as long as the faults make the caller wait, but not beyond their
// end. It ends the connection without an answer when the caller has gone.
//
// The server's own time limits are lifted: they would end the connection, or the
// answer, of a caller who is still there. The body is read before, since the
// server hears of a caller's leaving only then.
func waitOut(w http.ResponseWriter, r *http.Request, faults []*activeFault) {
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

// answer is what the caller would get of it uncut.
func (f fate) answer(p place, next http.Handler, r *http.Request) *recorded {
	rec := &recorded{header: http.Header{}}
	switch {
	case f.status != 0:
		p.fail(rec, f.status)
		return rec
	case f.wrong == chaos.Page:
		rec.page()
		return rec
	case f.wrong == chaos.Error:
		p.fail(rec, http.StatusInternalServerError)
		rec.status = http.StatusOK
		return rec
	}
	next.ServeHTTP(rec, r)
	switch f.wrong {
	case chaos.Empty:
		rec.empty()
	case chaos.Truncated:
		rec.body = rec.body[:len(rec.body)/2]
	}
	return rec
}
