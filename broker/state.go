package broker

// Phase is the state of a request, as in the API and the audit log.
type Phase string

// The phases of a request. It has a handle from Wrapped on; the last five are final.
const (
	Received Phase = "received"
	Verified Phase = "verified"
	Wrapped  Phase = "wrapped"
	Pushing  Phase = "pushing"
	// Accepted means that the task answered the push with 200.
	Accepted Phase = "accepted"
	// Active means that the task has the token, and that ECS vouched for it again.
	Active   Phase = "active"
	Rejected Phase = "rejected"
	// Conflict means that the task holds a valid token already.
	Conflict Phase = "conflict"
	Expired  Phase = "expired"
	Failed   Phase = "failed"
	Revoked  Phase = "revoked"
)

// event is what happens to a request.
type event uint8

const (
	taskConfirmed event = iota // ECS and the rules permit the task
	refused                    // they do not
	issued                     // the backend promised a token
	faulted                    // the backend or the store failed
	started                    // the first push is sent
	answeredOK                 // a push was answered with 200
	answeredHeld               // ... with 409
	answeredNo                 // ... with 400 or 403
	answeredFault              // ... with 502: the task has lost the handle
	answeredLost               // the answer was lost after the redemption
	redeemed                   // the handle was exchanged for the token
	misused                    // the handle came twice, or from elsewhere
	unredeemed                 // 200, and no redemption within redeemLimit
	handleEnded                // the handle expired
	taskGone                   // ECS shows the task as stopped or moved
	replaced                   // a newer token or request of the task took over
	returned                   // the holder has it revoked: the caller of the event does that
	tokenEnded                 // the token expired
)

// action is what the broker does because of a transition.
type action uint8

const (
	doRevoke action = iota // the token, or the promise of one
	doAlarm
	doAwait   // redemption, for redeemLimit
	doRecheck // ask ECS again
	doReplace // revoke earlier tokens of the task
)

// state is the state of a request.
type state struct {
	Phase    Phase
	Redeemed bool
}

// final reports whether no event changes the state.
func (s state) final() bool {
	switch s.Phase {
	case Rejected, Conflict, Expired, Failed, Revoked:
		return true
	}
	return false
}

// open reports whether the handle can be redeemed.
func (s state) open() bool { return (s.Phase == Pushing || s.Phase == Accepted) && !s.Redeemed }

// live reports whether the request is under way: there is one per task.
func (s state) live() bool { return !s.final() && s.Phase != Active }

// next returns the state after an event, and what to do. It returns false for an event
// that changes nothing.
func (s state) next(e event) (state, []action, bool) {
	if s.final() {
		return s, nil, false
	}
	switch e {
	case misused:
		return state{Revoked, s.Redeemed}, []action{doRevoke, doAlarm}, true
	case taskGone, replaced:
		return state{Revoked, s.Redeemed}, []action{doRevoke}, true
	case returned:
		if s.Redeemed {
			return state{Revoked, true}, nil, true
		}
	case faulted:
		return state{Failed, s.Redeemed}, []action{doRevoke}, true
	case tokenEnded: // also before ECS was asked again
		if s.Redeemed {
			return state{Expired, true}, nil, true
		}
	}
	switch s.Phase {
	case Received, Verified, Wrapped:
		return s.nextBeforePush(e)
	case Pushing:
		return s.nextWhilePushing(e)
	case Accepted:
		return s.nextAccepted(e)
	}
	return s, nil, false // active
}

func (s state) nextBeforePush(e event) (state, []action, bool) {
	switch {
	case s.Phase == Received && e == taskConfirmed:
		return state{Phase: Verified}, nil, true
	case e == refused:
		return state{Phase: Rejected}, nil, true
	case s.Phase == Verified && e == issued:
		return state{Phase: Wrapped}, nil, true
	case s.Phase == Wrapped && e == started:
		return state{Phase: Pushing}, nil, true
	}
	return s, nil, false
}

// nextWhilePushing: only 200 proves that the task has the token. After a redemption, 409 and no
// answer leave open whether it does, since the answer to the redemption may be lost, too:
// the token counts as delivered, and those before it stay. 502 after the redemption means
// that the token was not stored: the task answers it to the push that lost the handle, and
// refuses all later ones.
func (s state) nextWhilePushing(e event) (state, []action, bool) {
	switch e {
	case redeemed:
		return state{Pushing, true}, nil, !s.Redeemed
	case answeredOK:
		if s.Redeemed {
			return state{Accepted, true}, []action{doReplace, doRecheck}, true
		}
		return state{Phase: Accepted}, []action{doAwait}, true
	case answeredHeld, handleEnded, answeredLost:
		return s.nextUnconfirmed(e)
	case answeredNo:
		return state{Failed, s.Redeemed}, []action{doRevoke}, true
	case answeredFault:
		if s.Redeemed {
			return state{Failed, true}, []action{doRevoke}, true
		}
	}
	return s, nil, false
}

func (s state) nextUnconfirmed(e event) (state, []action, bool) {
	switch {
	case s.Redeemed:
		return state{Accepted, true}, []action{doRecheck}, true
	case e == answeredHeld:
		return state{Phase: Conflict}, []action{doRevoke}, true
	case e == handleEnded:
		return state{Phase: Expired}, []action{doRevoke}, true
	}
	return s, nil, false
}

func (s state) nextAccepted(e event) (state, []action, bool) {
	switch {
	case e == redeemed && !s.Redeemed:
		return state{Accepted, true}, []action{doReplace, doRecheck}, true
	case e == unredeemed && !s.Redeemed:
		return state{Phase: Revoked}, []action{doRevoke, doAlarm}, true
	case e == taskConfirmed && s.Redeemed:
		return state{Active, true}, nil, true
	}
	return s, nil, false
}
