package controlplane

import (
	"crypto/rand"
	"time"
)

// Statuses of a service deployment.
const (
	inProgress     = "IN_PROGRESS"
	successful     = "SUCCESSFUL"
	stopped        = "STOPPED"
	rollingBack    = "ROLLBACK_IN_PROGRESS"
	rolledBack     = "ROLLBACK_SUCCESSFUL"
	rollbackFailed = "ROLLBACK_FAILED"
)

// maxHistory bounds the deployments that a service remembers; AWS shows those of 90 days.
const maxHistory = 100

// outcome is what the service deployment of a Deployment shows beside it. A rollback to the Deployment
// changes nothing of it.
type outcome struct {
	id             string // of the service deployment
	number         int    // in the order of the service's deployments
	status, reason string
	finished       time.Time // zero before
	sources        []string  // IDs of the deployments that it replaces
	back           string    // ID of the deployment to which it was rolled back
}

func newOutcome() outcome {
	const length = 21
	return outcome{id: rand.Text()[:length], status: inProgress}
}

// record adds a deployment to the history, and ends those that it replaces.
func (s *Service) record(d *Deployment) {
	s.finish(stopped, rollbackFailed, "A newer service deployment replaced this one.", d.Created)
	for _, o := range s.Deployments {
		d.outcome.sources = append(d.outcome.sources, o.ID)
	}
	s.began++
	d.outcome.number = s.began
	s.history = append([]*Deployment{d}, s.history[:min(len(s.history), maxHistory-1)]...)
}

// finish ends what goes on: rollbacks with the second status, other deployments with the first one.
func (s *Service) finish(status, rollback, reason string, now time.Time) {
	for _, d := range s.history {
		switch o := &d.outcome; {
		case !o.finished.IsZero():
		case o.status == rollingBack:
			o.status, o.finished = rollback, now
		default:
			o.status, o.reason, o.finished = status, reason, now
		}
	}
}

// broken takes the end of a deployment by the circuit breaker, and to which one it is rolled back, if to any.
func (s *Service) broken(d *Deployment, back string, now time.Time) {
	const exceeded = "because the circuit breaker threshold was exceeded."
	o := &d.outcome
	switch {
	case !o.finished.IsZero(): // it was the one to return to
		s.finish(stopped, rollbackFailed, "", now)
	case !s.Breaker.Rollback: // AWS's text is not known
		o.status, o.reason, o.finished = stopped, "Service deployment failed "+exceeded, now
	case back == "":
		o.status, o.reason, o.finished = rollbackFailed, "No rollback candidate was found to run the rollback.", now
	default:
		o.status, o.reason, o.back = rollingBack, "Service deployment rolled back "+exceeded, back
	}
}
