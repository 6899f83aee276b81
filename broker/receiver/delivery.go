package receiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// missingLimit is how long a task may be unknown to ECS, whose answers are eventually
	// consistent.
	missingLimit = time.Minute
	// redeemLimit leaves the broker time to read the answer to its push, which it awaits
	// for 10 s.
	redeemLimit = 7 * time.Second
	// readyLimit bounds the wait until a new token is usable.
	readyLimit = 2 * time.Second
	// statePoll is how often the state of an accepted request is read, until pushLimit.
	statePoll = 5 * time.Second
	// pushLimit is longer than the life of a handle.
	pushLimit = 150 * time.Second
	// linesAtOnce and linePause bound the lines about pushes that are not accepted, and maxLogged
	// the length of their errors in bytes.
	linesAtOnce, linePause, maxLogged = 10, 10 * time.Second, 256
)

// delivery is one effort to obtain a token: requests to the broker until one of them is
// answered by a push. It is the handler of the callback port.
type delivery struct {
	receiver *receiver
	start    time.Time
	// bearer is the token to replace; empty for a first one.
	bearer secret.Value
	// ended ends the requests when the token is there.
	ended context.CancelFunc
	// dropped gets the reason when a handle was lost, so that another request is needed.
	dropped chan error

	unanswered bool

	// lines bounds those of the log about pushes that are not accepted, which any caller can
	// cause, and omitted counts the others.
	lines   rate.Sometimes
	omitted atomic.Int64

	// turn is held by the push that is being answered.
	turn chan struct{}

	mu sync.Mutex
	// keys are those of the requests that may be answered by a push, by their nonces.
	keys     map[string]Key
	obtained token
}

// attempt makes one request and waits for its push. Its errors have a class.
func (d *delivery) attempt(ctx context.Context) error {
	if err := d.receiver.files.check(); err != nil { // a token that cannot be written is not requested
		return err
	}
	select {
	case <-d.dropped: // of an earlier attempt
	default:
	}
	key, err := NewKey()
	if err != nil {
		return err
	}
	nonce := NewNonce()
	d.mu.Lock()
	d.keys[string(nonce)] = key
	d.mu.Unlock()
	accepted, err := d.receiver.deps.Client.request(ctx, d.bearer, TokenRequest{
		Cluster: d.receiver.task.ClusterARN(), TaskARN: d.receiver.task.TaskARN, CallbackPort: d.receiver.opt.Port,
		Nonce: nonce, PublicKey: key.Public(),
	})
	if err == nil {
		d.unanswered = false
		return d.await(ctx, accepted.RequestID)
	}
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok {
		if consulutil.Classify(err).Retryable() && !consulutil.Unreachable(err) {
			d.unanswered = true // and may be accepted: its key stays
		}
		return err
	}
	d.forget(nonce)
	if refused.Status == http.StatusConflict && d.unanswered {
		d.unanswered = false
		return d.await(ctx, "")
	}
	return &retry.DelayError{Err: consulutil.WithClass(err, d.class(refused)), Delay: refused.After}
}

// class returns what waiting can change about a refusal of a request.
func (d *delivery) class(refused *RefusedError) retry.Class {
	switch status := refused.Status; {
	case status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return retry.NotYet
	case !d.bearer.Empty() && refused.Code == UnknownToken:
		// The token to replace is gone: ask for a first one. Nothing else may lead there,
		// since the broker then revokes the current token without an overlap.
		d.receiver.deps.Log.Warn("the broker does not accept the token for its rotation, requesting a new one",
			logkey.Status, status)
		d.bearer = secret.Value{}
		return retry.NotYet
	case status == http.StatusNotFound && time.Since(d.start) < missingLimit:
		return retry.NotYet
	}
	return d.lasting(refused)
}

// lasting returns the class of a refusal that only an operator can change. A task that had a token
// waits for that when the backend refuses the broker; one that starts reports it. What a proxy
// answers states nothing about the broker.
func (d *delivery) lasting(refused *RefusedError) retry.Class {
	if refused.foreign() || refused.Code == BackendFailed && !d.receiver.held.secret.Empty() {
		return retry.NotYet
	}
	return retry.Permanent
}

// await returns when the request cannot be answered by a push any more. A push ends ctx.
func (d *delivery) await(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	tick := time.NewTicker(statePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("no push arrived for request %s on port %d; check the security group from the broker to the task: %w", id, d.receiver.opt.Port, ctx.Err())
		case err := <-d.dropped:
			return fmt.Errorf("the handle of request %s was lost: %w", id, err)
		case <-tick.C:
		}
		if id == "" {
			continue
		}
		if err := d.ending(ctx, id); err != nil {
			return err
		}
	}
}

// ending returns the error of a request that has ended at the broker. A broker that does not
// answer changes nothing: it may still push.
func (d *delivery) ending(ctx context.Context, id string) error {
	status, err := d.receiver.deps.Client.status(ctx, id)
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Status == http.StatusNotFound {
		return fmt.Errorf("the broker does not know request %s any more", id)
	}
	switch status.State {
	case "rejected", "conflict", "expired", "failed", "revoked":
		class := retry.NotYet
		if status.State == "rejected" {
			class = retry.Permanent
		}
		return consulutil.WithClass(fmt.Errorf("request %s is %s: %s", id, status.State, status.Reason), class)
	}
	return nil
}

func (d *delivery) forget(nonce Nonce) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, string(nonce))
}

// ServeHTTP answers a push.
func (d *delivery) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	status, err := d.receive(req)
	if err != nil {
		d.omitted.Add(1)
		d.lines.Do(func() {
			d.receiver.deps.Log.Warn("push not accepted", logkey.Status, status, logkey.Address, req.RemoteAddr,
				logkey.Error, Cut(err.Error(), maxLogged), logkey.Dropped, d.omitted.Swap(0)-1)
		})
	}
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
}

// receive returns the status that answers a push, and an error for all but 200.
func (d *delivery) receive(req *http.Request) (int, error) {
	if req.Method != http.MethodPost || req.URL.Path != "/" {
		return http.StatusNotFound, fmt.Errorf("%q %q: only POST / is served", Cut(req.Method, maxField),
			Cut(req.URL.Path, maxField))
	}
	body, err := ReadBody(req.Body)
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("read the push: %w", err)
	}
	push, err := DecodePush(body)
	if err != nil {
		return http.StatusBadRequest, err
	}
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	key, err := d.lookup(push.Nonce)
	switch {
	case errors.Is(err, errHeld):
		return http.StatusConflict, err
	case err != nil:
		return http.StatusForbidden, err
	}
	handle, err := key.Open(push.Token, d.receiver.task.TaskARN, push.Nonce)
	if err != nil {
		return http.StatusForbidden, err
	}
	// A broker that gives up its push must not interrupt the redemption: the token would
	// be lost.
	status, err := d.redeem(context.WithoutCancel(req.Context()), push, handle)
	if err == nil {
		d.ended()
	}
	return status, err
}

var (
	errHeld    = errors.New("the task's token is valid")
	errDropped = errors.New("the handle of the request was lost")
	errUnknown = errors.New("the nonce does not belong to a request of this task")
)

// lookup returns the key of a request that waits for its push.
func (d *delivery) lookup(nonce Nonce) (Key, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	key, known := d.keys[string(nonce)]
	_, dropped := d.receiver.dropped[string(nonce)]
	switch {
	case known:
		return key, nil
	case dropped:
		return key, errDropped
	case d.obtained.valid(now), d.receiver.held.valid(now):
		return key, errHeld
	}
	return key, errUnknown
}

// redeem trades the handle for the token and writes it. It returns the status that answers
// the push: 503 while the handle can still be redeemed, also by another push that was sent
// in the meantime, and 502 when the handle is lost: then the broker revokes a token that was made.
func (d *delivery) redeem(ctx context.Context, push Push, handle secret.Value) (status int, err error) {
	if err := d.receiver.files.check(); err != nil {
		return http.StatusServiceUnavailable, err
	}
	limited, cancel := context.WithTimeout(ctx, redeemLimit)
	defer cancel()
	u, err := d.receiver.deps.Client.unwrap(limited, UnwrapRequest{Handle: handle, RequestID: push.RequestID})
	if err != nil {
		class := retry.NotYet // another request has another handle
		refused, answered := errors.AsType[*RefusedError](err)
		switch {
		// Another status of 5xx is that of a proxy, which may have lost the broker's answer.
		case answered && (refused.Status == http.StatusServiceUnavailable ||
			refused.Status == http.StatusTooManyRequests),
			!answered && consulutil.Unreachable(err):
			return http.StatusServiceUnavailable, err
		case answered && refused.Code == HandleUsed:
			d.receiver.deps.Log.Error("the handle was redeemed by another process, which may have stolen it")
		case answered && refused.Status == http.StatusUnprocessableEntity:
			class = d.lasting(refused)
		}
		d.drop(push.Nonce, consulutil.WithClass(err, class))
		return http.StatusBadGateway, err
	}
	t := newToken(u, d.receiver.task.TaskARN, time.Now()).after(d.receiver.held)
	d.awaitReady(ctx, t)
	notRecorded, err := d.receiver.files.write(t, d.receiver.held.secret)
	if err != nil {
		class := retry.NotYet
		if _, configured := errors.AsType[*exit.UsageError](err); configured {
			class = retry.Permanent // another token cannot be written either
		}
		d.drop(push.Nonce, consulutil.WithClass(err, class))
		return http.StatusBadGateway, err
	}
	if notRecorded != nil {
		d.receiver.deps.Log.Warn("a restarted container will request another token, since this one's record was not written", logkey.Error, notRecorded)
	}
	d.mu.Lock()
	d.obtained = t
	clear(d.keys)
	d.mu.Unlock()
	d.receiver.deps.Log.Info("token obtained", logkey.Accessor, t.Accessor, logkey.Expires, t.end(), logkey.Path,
		d.receiver.files.path)
	return http.StatusOK, nil
}

// drop ends a request whose handle is lost. Further pushes of it are refused.
func (d *delivery) drop(nonce Nonce, why error) {
	d.mu.Lock()
	delete(d.keys, string(nonce))
	now := time.Now()
	maps.DeleteFunc(d.receiver.dropped, func(_ string, at time.Time) bool { return now.Sub(at) > pushLimit })
	d.receiver.dropped[string(nonce)] = now
	d.mu.Unlock()
	select {
	case d.dropped <- why:
	default:
	}
}

// awaitReady waits until the servers know a new token, so that no call fails with it.
func (d *delivery) awaitReady(ctx context.Context, t token) {
	ready := d.receiver.deps.Actions[t.Backend].Ready
	if ready == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := ready(ctx, t.secret); err != nil {
		d.receiver.deps.Log.Warn("the new token may be unknown to some of the servers", logkey.Accessor, t.Accessor,
			logkey.Error, err)
	}
}
