package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// RoundTrip brings a request to the broker.
func (w *fixture) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	op := req.Method + " " + req.URL.Path
	w.mu.Lock()
	w.calls = append(w.calls, op)
	w.mu.Unlock()
	lost := false
	w.mu.Lock()
	fault := w.fault
	w.mu.Unlock()
	if fault != nil {
		answer, loses, err := fault(op)
		if errors.Is(err, errHang) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		if answer != nil || err != nil {
			return answer, err
		}
		lost = loses
	}
	rec := httptest.NewRecorder()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/token", func(rw http.ResponseWriter, r *http.Request) { w.accept(rw, r, "") })
	mux.HandleFunc("POST /v1/rotate", func(rw http.ResponseWriter, r *http.Request) {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !w.alive(bearer) {
			refuse(rw, 401, "unknown_token", "the token is not known")
			return
		}
		w.accept(rw, r, bearer)
	})
	mux.HandleFunc("POST /v1/unwrap", w.unwrap)
	mux.HandleFunc("POST /v1/revoke", func(rw http.ResponseWriter, r *http.Request) {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !w.alive(bearer) {
			refuse(rw, 401, "unknown_token", "the token is not known")
			return
		}
		_ = w.revoke(r.Context(), secret.New(bearer))
		_, _ = io.WriteString(rw, `{"revoked": true}`)
	})
	mux.HandleFunc("GET /v1/token/{id}", func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		g := w.grants[r.PathValue("id")]
		if g == nil {
			refuse(rw, 404, "unknown_request", "no such request")
			return
		}
		_ = json.NewEncoder(rw).Encode(Status{RequestID: g.id, State: g.state})
	})
	mux.ServeHTTP(rec, req)
	if lost {
		return nil, errors.New("connection reset by peer")
	}
	return rec.Result(), nil
}

func refuse(rw http.ResponseWriter, status int, code, message string) {
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(Refusal{Message: message, Code: code, RequestID: "r0"})
}

// refusal returns an answer for fault.
func refusal(status int, retryAfter string) *http.Response {
	rec := httptest.NewRecorder()
	if retryAfter != "" {
		rec.Header().Set("Retry-After", retryAfter)
	}
	refuse(rec, status, "fault", "not now")
	return rec.Result()
}

func (w *fixture) accept(rw http.ResponseWriter, r *http.Request, replaces string) {
	body, err1 := ReadBody(r.Body)
	request, err2 := DecodeTokenRequest(body)
	foreign := request.TaskARN != taskARN || request.Cluster != clusterARN
	if err := errors.Join(err1, err2); err != nil || foreign {
		refuse(rw, 400, "malformed", fmt.Sprint(err))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.port == nil {
		w.t.Error("a request arrived before the callback port was open")
	}
	g := &fakeGrant{id: fmt.Sprintf("r%d", len(w.grants)+1), request: request, handle: NewHandle(), state: "pushing",
		expires: time.Now().Add(2 * time.Minute)}
	w.grants[g.id] = g
	w.secrets = append(w.secrets, g.handle.Reveal())
	if !w.noPush {
		w.running.Go(func() { w.deliver(g) })
	}
	rw.WriteHeader(202)
	_ = json.NewEncoder(rw).Encode(Accepted{RequestID: g.id, StatusURL: "/v1/token/" + g.id})
}

// push returns the body for a grant, sealed.
func (w *fixture) push(g *fakeGrant) Push {
	sealed, err := Seal(g.request.PublicKey, g.request.TaskARN, g.request.Nonce, g.handle)
	if err != nil {
		w.t.Error(err)
	}
	return Push{Token: sealed, TTL: 120, CreationTime: time.Now(), WrappedAccessor: "a-" + g.id, RequestID: g.id,
		Nonce: g.request.Nonce}
}

// deliver pushes until an answer is final or the handle has expired. A token that was
// redeemed and is then refused is lost, and revoked. As for the broker, one of which no answer
// proves that counts as delivered: the answer may be lost.
func (w *fixture) deliver(g *fakeGrant) {
	body, err := w.push(g).Encode()
	if err != nil {
		w.t.Error(err)
	}
	for pause := 500 * time.Millisecond; time.Now().Before(g.expires) && w.ctx.Err() == nil; pause = min(2*pause,
		8*time.Second) {
		status, err := w.post(body)
		if w.final(g, status, err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.state = "expired"; g.made != "" {
		g.state = "active"
	}
}

// final reports whether an answer ends the pushes, and with which state.
func (w *fixture) final(g *fakeGrant, status int, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && status == 200, g.made != "" && (err != nil || status == 409):
		g.state = "active"
	case status == 502 && g.made != "":
		g.state = "failed"
		delete(w.live, g.made)
	case err != nil || status >= 500:
		return false
	default:
		g.state = "conflict"
		delete(w.live, g.made)
	}
	return true
}

// post sends a body to the callback port and returns the status.
func (w *fixture) post(body []byte) (int, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: w.dial}}
	var before, after bool
	w.mu.Lock()
	fault := w.pushFault
	w.mu.Unlock()
	if fault != nil {
		before, after = fault()
	}
	if before {
		return 0, errors.New("i/o timeout")
	}
	resp, err := client.Post("http://10.0.0.1:8080/", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushes = append(w.pushes, resp.StatusCode)
	if after {
		return 0, errors.New("connection reset by peer")
	}
	return resp.StatusCode, nil
}

func (w *fixture) unwrap(rw http.ResponseWriter, r *http.Request) {
	body, err1 := ReadBody(r.Body)
	request, err2 := DecodeUnwrapRequest(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.grants[request.RequestID]
	switch {
	case errors.Join(err1, err2) != nil || g == nil || !g.handle.Equal(request.Handle):
		refuse(rw, 404, "unknown_handle", "no such handle")
		return
	case g.made != "" || time.Now().After(g.expires):
		delete(w.live, g.made)
		refuse(rw, 410, "used", "the handle was used")
		return
	}
	w.tokens++
	g.made = fmt.Sprintf("secret-%d-of-the-task", w.tokens)
	expires := time.Now().Add(w.ttl)
	w.live[g.made] = expires
	if w.endless {
		expires, w.live[g.made] = time.Time{}, time.Now().Add(1000*time.Hour)
	}
	w.secrets = append(w.secrets, g.made)
	w.count()
	encoded, err := Unwrapped{
		Secret: secret.New(g.made), Accessor: "accessor-" + g.id, Backend: w.backend, Expires: expires,
		Policies: []string{"web"}, Period: int(w.period.Seconds()),
	}.Encode()
	if err != nil {
		w.t.Error(err)
	}
	_, _ = rw.Write(encoded)
}
