package broker

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// connectLimit bounds the connection to a task, and pushLimit a whole push with the
	// redemption that happens meanwhile.
	connectLimit, pushLimit = 2 * time.Second, 10 * time.Second
	// promptLimit is how long a task has to present the handle of a push; then the push is given
	// up. It has pushLimit for the next one, which is among those that hang.
	promptLimit = 2 * time.Second
	// promptPushes bounds the pushes at one time, and slowPushes those to tasks whose last one
	// hung, so that they hold back no others.
	promptPushes, slowPushes = 512, 256
	// maxPushPause is the longest pause between two pushes.
	maxPushPause = 8 * time.Second
)

// pushPause returns the pause before an attempt, counted from 0: 0, 0.5, 1, 2, 4, 8, 8 s and so
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
	client       *http.Client
	prompt, slow chan struct{}
}

func newPusher(dial func(ctx context.Context, network, address string) (net.Conn, error)) pusher {
	return pusher{
		prompt: make(chan struct{}, promptPushes), slow: make(chan struct{}, slowPushes),
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

// errHangs means that a task did not present its handle.
var errHangs = fmt.Errorf("no answer within %s", promptLimit)

// hangs reports whether a push ended without an answer in time.
func hangs(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, errHangs) || ok && timeout.Timeout()
}

// push posts to a task when it is its turn, and returns the status. Slow is for a task whose last
// push hung. presented reports whether the task has begun to redeem the handle.
func (p pusher) push(
	ctx context.Context, to netip.AddrPort, body []byte, slow bool, presented func() bool,
) (int, error) {
	slots := p.prompt
	if slow {
		slots = p.slow
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-slots }()
	if slow {
		return p.send(ctx, to, body)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	timer := time.AfterFunc(promptLimit, func() {
		if !presented() {
			giveUp(errHangs)
		}
	})
	defer timer.Stop()
	status, err := p.send(ctx, to, body)
	if err != nil && errors.Is(context.Cause(ctx), errHangs) {
		err = errHangs
	}
	return status, err
}

// send posts a body and returns the status.
func (p pusher) send(ctx context.Context, to netip.AddrPort, body []byte) (int, error) {
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

// delivery is the delivery of the handle of one request.
type delivery struct {
	lead    *leadership
	request *request
}

// run pushes the handle until the task has it, refuses it, or it expires.
func (d *delivery) run(ctx context.Context) {
	body, err := d.pushBody()
	if err != nil {
		d.lead.on(d.request, faulted, err.Error())
		return
	}
	to := netip.AddrPortFrom(d.request.subject.task.Address, uint16(d.request.in.CallbackPort))
	life, cancel := context.WithTimeout(ctx, handleTTL)
	defer cancel()
	go func() {
		select {
		case <-d.request.over:
			cancel()
		case <-life.Done():
		}
	}()
	d.lead.on(d.request, started, "")
	last, slow := "", false
	for attempt := 0; retry.Sleep(life, pushPause(attempt)) == nil; attempt++ {
		d.lead.table.mu.Lock()
		d.request.attempts++
		d.lead.table.mu.Unlock()
		status, err := d.lead.broker.pusher.push(life, to, body, slow,
			func() bool { return d.lead.table.presented(d.request) })
		if err != nil && life.Err() != nil {
			break
		}
		if d.answered(status, err) {
			return
		}
		slow = hangs(err)
		if last = "the push was answered with " + strconv.Itoa(status); err != nil {
			last = err.Error()
		}
	}
	if ctx.Err() == nil { // the end of the leadership voids handles silently: tasks ask again
		d.lead.on(d.request, handleEnded, "the handle expired; last push: "+last)
	}
}

// answered takes the result of a push, and reports whether it was the last one.
func (d *delivery) answered(status int, err error) bool {
	result := "error"
	if err == nil {
		result = strconv.Itoa(status)
	}
	d.lead.opt.Metrics.pushes.Add(1, result)
	e, reason := answeredNo, fmt.Sprintf("the push was answered with %d", status)
	switch {
	case err != nil && d.lead.table.redeemed(d.request):
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
	return d.lead.on(d.request, e, reason)
}

// pushBody makes the handle.
func (d *delivery) pushBody() ([]byte, error) {
	token, err := d.handleFor()
	if err != nil {
		return nil, err
	}
	p := receiver.Push{
		Token: token, TTL: int(handleTTL / time.Second), CreationTime: time.Now().UTC(),
		WrappedAccessor: d.request.grant.Accessor,
	}
	if len(d.request.in.Nonce) > 0 {
		p.RequestID, p.Nonce = d.request.id, d.request.in.Nonce
	}
	return p.Encode()
}

// handleFor makes the request's handle and what is pushed of it.
func (d *delivery) handleFor() (secret.Value, error) {
	handle := receiver.NewHandle()
	d.lead.table.mu.Lock()
	d.request.handle = handle.SHA256()
	d.lead.table.mu.Unlock()
	if len(d.request.in.PublicKey) == 0 {
		return handle, nil
	}
	return receiver.Seal(d.request.in.PublicKey, d.request.in.TaskARN, d.request.in.Nonce, handle)
}
