package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// messageLimit is how long a stream waits for its first message. A proxy that Consul
	// knows gets it in less than a second. idleLimit is the limit at a server that has sent
	// none before, while no other has: then it may be the proxy for which there is nothing
	// yet, or many that start.
	messageLimit = 10 * time.Second
	idleLimit    = time.Minute
	// firstLook is the time after which the server of a stream without an answer is asked
	// for its leader; untilLook has the times after that.
	firstLook = 2 * time.Second
	lookLimit = 2 * time.Second
	// confirmPause is how long another server must have a leader that the stream's server
	// has not: after an election servers learn of the leader at slightly different times.
	confirmPause = time.Second
	// lookOthers is how many other servers are asked while the stream's one has no leader.
	lookOthers = 2
	// leavePause is the least time between two streams that are left for the leader.
	leavePause = 30 * time.Second
)

var (
	errServerRemoved = errors.New("the server is no longer one of the Consul servers")
	errTokenChanged  = errors.New("the token was renewed")
)

// outdated waits until the stream must end, because its server was removed or its token
// replaced, and returns why; nil when ctx ends. A token that cannot be read and an
// empty set of servers change nothing.
func (r *XDS) outdated(ctx context.Context, s *stream) error {
	tick := time.NewTicker(tokenPoll)
	defer tick.Stop()
	var unread retry.Causes
	for {
		changed := r.config.Servers.Changed()
		if known, err := r.config.Servers.GRPCAddresses(ctx); err == nil && !slices.Contains(known, s.address) {
			return errServerRemoved
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			continue
		case <-tick.C:
		}
		now, err := r.config.Token()
		switch {
		case err != nil:
			r.config.Log.Log(unread.Level(err), "token was not read, the xDS stream keeps the one it has",
				logkey.Error, fmt.Sprint(err, advice(err)))
		case now != s.token:
			if retry.Sleep(ctx, tokenOverlap) != nil {
				return nil
			}
			return errTokenChanged
		}
	}
}

// silent waits for the first message of the stream, and returns an error when it does not
// come in time.
func (r *XDS) silent(ctx context.Context, s *stream) error {
	limit := r.history.limit(s.address)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-s.answered:
		return nil
	case <-timer.C:
		r.history.silent(s.address)
		return fmt.Errorf("the server accepted the stream and sent nothing in %s", limit)
	}
}

// leaderless asks the stream's server for its leader, and returns an error when it has
// none, or does not answer, while another server has one.
func (r *XDS) leaderless(ctx context.Context, s *stream) error {
	answered, look := s.answered, time.NewTimer(firstLook)
	defer look.Stop()
	looked := time.Now().Add(-r.connector.pingAfter / 4) // so that the first look is half-way to the first ping
	for noLeader := error(nil); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-answered:
			answered = nil
		case <-look.C:
			if wait := r.untilLook(s, looked); wait > 0 && answered == nil {
				look.Reset(wait)
				continue
			}
			before := noLeader
			looked = time.Now()
			noLeader = r.hasLeader(ctx, s.address)
			if noLeader != nil && (answered != nil || r.history.mayLeave()) && r.othersLead(ctx, s.address, looked) {
				r.history.leaves()
				return fmt.Errorf("another Consul server has a leader, this one has not: %w", noLeader)
			}
			r.logLeader(ctx, s.address, before, noLeader)
		}
		look.Reset(max(r.untilLook(s, looked), firstLook))
	}
}

// untilLook returns how long to wait before the stream's server, looked at then, is looked at.
// The looks are half-way between the pings, which come after pingAfter of silence, so
// that a server that stops is noticed after half of that. While there is no silence, they
// are rarer. With the 10 s in which a server that is cut off notices that, a stream is stale
// for less than 45 s.
func (r *XDS) untilLook(s *stream, looked time.Time) time.Duration {
	silent := time.Until(s.heard().Add(r.connector.pingAfter / 2))
	again := time.Until(looked.Add(r.connector.pingAfter * 3 / 4))
	return min(max(silent, again), time.Until(looked.Add(r.connector.pingAfter*5/4)))
}

// logLeader logs that the server of a stream that stays where it is has lost its leader,
// or has one again.
func (r *XDS) logLeader(ctx context.Context, address string, before, now error) {
	switch {
	case ctx.Err() != nil:
	case before == nil && now != nil:
		r.config.Log.Warn("Consul server has no leader, and no other server is known to have one: the xDS stream stays",
			logkey.Address, address, logkey.Reason, now)
	case before != nil && now == nil:
		r.config.Log.Info("Consul server has a leader again", logkey.Address, address)
	}
}

// othersLead reports whether another server has a leader, and the server of that address,
// which has had none since then, has none after that, either. Servers without a leader that
// it meets are tried last.
func (r *XDS) othersLead(ctx context.Context, address string, since time.Time) bool {
	known, err := r.config.Servers.GRPCAddresses(ctx)
	if err != nil {
		return false
	}
	others := slices.DeleteFunc(slices.Clone(known), func(a string) bool { return a == address })
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	without := map[string]error{}
	for _, other := range others[:min(len(others), lookOthers)] {
		if err := r.hasLeader(ctx, other); err != nil {
			without[other] = err
			continue
		}
		if retry.Sleep(ctx, confirmPause-time.Since(since)) != nil || r.hasLeader(ctx, address) == nil ||
			ctx.Err() != nil {
			return false
		}
		for a, err := range without {
			r.config.Servers.GRPCFailed(a, err)
		}
		return true
	}
	return false
}

func (r *XDS) hasLeader(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return r.config.Servers.HasLeader(ctx, address)
}
