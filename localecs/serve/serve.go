package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/simulated"
)

// Options say what is served, and where.
type Options struct {
	// Cluster makes the tasks' world; its Observe may be nil.
	Cluster localecs.Options
	// Simulated, unless it is nil, is how long the steps of tasks without processes
	// take; of Cluster then only Region, Account, Subnet, AtOnce and Roles count.
	Simulated *simulated.Timing
	// Listener is the API's, and is closed by Close. What listens must be
	// reachable for nobody but the user of this machine.
	Listener net.Listener
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag record.Lag
	// Observe gets each new version of a task; nil for nobody. It must not block.
	Observe func(task ecs.Task, at time.Time)
	Log     hclog.Logger
}

// Server is a running local ECS.
type Server struct {
	ground  ground
	key     identity.Key
	options Options
	server  *http.Server
	serving sync.WaitGroup
}

// userName is who the exports stand for.
const userName = "localecs"

// Open starts the cluster and serves its API.
func Open(o Options) (*Server, error) {
	g, err := o.open()
	if err != nil {
		return nil, errors.Join(err, o.Listener.Close())
	}
	s := &Server{ground: g, options: o}
	s.key = g.identities.PutUser(identity.User{Name: userName, Account: o.Cluster.Account, Actions: []string{"*"}})
	const patience = 30 * time.Second
	s.server = &http.Server{Handler: g.aws, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: 2 * patience}
	s.serving.Go(func() { // what ends it is Close
		if err := s.server.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("ECS API cannot be served any more", logkey.Error, err)
		}
	})
	return s, nil
}

// URL is where the API is, and STS and IAM.
func (s *Server) URL() string { return "http://" + s.options.Listener.Addr().String() }

// Region is the ECS that is served, nil where tasks have no processes.
func (s *Server) Region() *region.Region { return s.ground.region }

// Lost is closed when no task can run any more; Err says why.
func (s *Server) Lost() <-chan struct{} { return s.ground.lost }

// Err is why no task can run any more, nil as long as they can.
func (s *Server) Err() error { return s.ground.err() }

// Close takes the API away, then kills the tasks and gives everything back.
func (s *Server) Close() error {
	err := s.server.Close()
	s.serving.Wait()
	return errors.Join(err, s.ground.close())
}

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// Exports are what makes AWS's command line and SDKs call this ECS.
func (s *Server) Exports() []Variable {
	return []Variable{
		{"AWS_ENDPOINT_URL_ECS", s.URL()},
		{"AWS_ENDPOINT_URL_STS", s.URL()},
		{"AWS_ENDPOINT_URL_IAM", s.URL()},
		{"AWS_ACCESS_KEY_ID", s.key.AccessKeyID},
		{"AWS_SECRET_ACCESS_KEY", s.key.Secret},
		{"AWS_REGION", s.options.Cluster.Region},
		{"AWS_DEFAULT_REGION", s.options.Cluster.Region},
	}
}

// CheckLoopback refuses an address that others than this machine can reach: who
// may call the API runs programs here.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q: want HOST:PORT such as 127.0.0.1:0: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q: want a loopback address such as 127.0.0.1:0: who may call the API runs programs here", address)
	}
	return nil
}
