package broker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// connectLimit bounds the connection to a task, and pushLimit a whole push with the
	// redemption that happens meanwhile.
	connectLimit, pushLimit = 2 * time.Second, 10 * time.Second
	// pushesInFlight bounds the pushes at one time.
	pushesInFlight = 64
	// maxPushPause is the longest pause between two pushes.
	maxPushPause = 8 * time.Second
)

// pushPause is the pause before an attempt, counted from 0: 0, 0.5, 1, 2, 4, 8, 8 s and so
// on, +-20 %.
func pushPause(attempt int) time.Duration {
	if attempt == 0 {
		return 0
	}
	pause := min(maxPushPause, 500*time.Millisecond<<min(attempt-1, 10))
	return pause*8/10 + rand.N(pause*4/10+1)
}

// pusher posts to tasks. It follows no redirect and uses no proxy: the address is all
// that ECS vouches for.
type pusher struct {
	client *http.Client
	slots  chan struct{}
}

func newPusher(dial func(ctx context.Context, network, address string) (net.Conn, error)) pusher {
	return pusher{
		slots: make(chan struct{}, pushesInFlight),
		client: &http.Client{
			Timeout:       pushLimit,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DisableKeepAlives: true, MaxResponseHeaderBytes: receiver.MaxBody,
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					ctx, cancel := context.WithTimeout(ctx, connectLimit)
					defer cancel()
					return dial(ctx, network, address)
				},
			},
		},
	}
}

// send posts a body and returns the status.
func (p pusher) send(ctx context.Context, to netip.AddrPort, body []byte) (int, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-p.slots }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.String()+"/", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, receiver.MaxBody) // its content does not matter
	return resp.StatusCode, nil
}

// deliver pushes the handle until the task has it, refuses it, or it expires.
func (t *term) deliver(ctx context.Context, r *request) {
	body, err := t.pushBody(r)
	if err != nil {
		t.on(r, faulted, err.Error())
		return
	}
	to := netip.AddrPortFrom(r.subject.task.Address, uint16(r.in.CallbackPort))
	life, cancel := context.WithTimeout(ctx, handleTTL)
	defer cancel()
	go func() {
		select {
		case <-r.over:
			cancel()
		case <-life.Done():
		}
	}()
	t.on(r, started, "")
	last := ""
	for attempt := 0; retry.Sleep(life, pushPause(attempt)) == nil; attempt++ {
		t.mu.Lock()
		r.attempts++
		t.mu.Unlock()
		status, err := t.pusher.send(life, to, body)
		if err != nil && life.Err() != nil {
			break
		}
		if t.answered(r, status, err) {
			return
		}
		if last = "the push was answered with " + strconv.Itoa(status); err != nil {
			last = err.Error()
		}
	}
	if ctx.Err() == nil { // the end of the term voids handles silently: tasks ask again
		t.on(r, handleEnded, "the handle expired; last push: "+last)
	}
}

// answered takes the result of a push, and reports whether it was the last one.
func (t *term) answered(r *request, status int, err error) bool {
	result := "error"
	if err == nil {
		result = strconv.Itoa(status)
	}
	t.Metrics.pushes.Add(1, result)
	e, reason := answeredNo, fmt.Sprintf("the push was answered with %d", status)
	switch {
	case err != nil && t.hasToken(r):
		e, reason = answeredLost, "the handle was redeemed, and the answer to the push was lost"
	case err != nil:
		return false
	case status == http.StatusOK:
		e, reason = answeredOK, ""
	case status == http.StatusConflict:
		e, reason = answeredHeld, "the task holds a valid token"
	case status == http.StatusBadGateway:
		e = answeredFault
	case status >= 500:
		return false // the task answers the next push, also if a replayed one has the token
	}
	return t.on(r, e, reason)
}

func (t *term) hasToken(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.state.Redeemed
}

// pushBody makes the handle.
func (t *term) pushBody(r *request) ([]byte, error) {
	token, err := t.handleFor(r)
	if err != nil {
		return nil, err
	}
	p := receiver.Push{
		Token: token, TTL: int(handleTTL / time.Second), CreationTime: time.Now().UTC(), WrappedAccessor: r.grant.Accessor,
	}
	if len(r.in.Nonce) > 0 {
		p.RequestID, p.Nonce = r.id, r.in.Nonce
	}
	return p.Encode()
}
