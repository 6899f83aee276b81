package controlplane

import (
	"context"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Services are the services of an account. Their methods are the API's calls;
// the errors are *ecs.Error.
type Services struct {
	plane   *Plane
	account shapes.Account
	lag     Lag
	news    chan struct{}

	mu     sync.Mutex
	byKey  map[key]*service
	tokens map[string]token
}

// key is where a service is.
type key struct{ cluster, name string }

// token is what a client token stands for.
type token struct {
	fingerprint string
	service     *service
	at          time.Time
}

// service is one service. Its versions' settings are by deployment.
type service struct {
	key
	Service
	// status is ACTIVE, DRAINING or INACTIVE.
	status    string
	settings  map[string]shapes.RunTaskInput
	revisions map[string]revision
	propagate string
	rebalance string // between zones
	tags      []shapes.Tag
	grace     *int
	created   time.Time
	ended     time.Time // INACTIVE
	createdBy string
	events    []shapes.ServiceEvent // newest first
	first     string                // fingerprint of CreateService
}

// revision is what a deployment runs.
type revision struct {
	arn string
	// probed are its essential containers with a health check.
	probed []string
}

// New returns the services on top of a plane: none. What they show is as late as
// lag says.
func NewServices(plane *Plane, account shapes.Account, lag Lag) *Services {
	return &Services{plane: plane, account: account, lag: lag, news: make(chan struct{}, 1), byKey: map[key]*service{}, tokens: map[string]token{}}
}

// Notify says that a task has changed. It never blocks.
func (s *Services) Notify() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// period is how often services are looked at when no task changes.
const period = time.Second

// Run looks after the services until ctx ends.
func (s *Services) Run(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
		case <-tick.C:
		}
		s.Look(time.Now())
	}
}
