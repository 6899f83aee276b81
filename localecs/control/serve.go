package control

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// Options say what is served, and where.
type APIOptions struct {
	// Cluster makes the tasks' world; its Observe may be nil.
	Cluster cluster.Options
	// Simulated, unless it is nil, is how long the steps of tasks without processes
	// take; of Cluster then only Region, Account, Subnet, AtOnce and Roles count.
	Simulated *simulated.Timing
	// Listener is the API's, and is closed by Close. What listens must be
	// reachable for nobody but the user of this machine.
	Listener net.Listener
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag controlplane.Lag
	// Observe gets each new version of a task; nil for nobody. It must not block.
	Observe func(task shapes.Task, at time.Time)
	Log     hclog.Logger
}

// Server is a running local ECS.
type APIServer struct {
	ground  ground
	key     iam.Key
	options APIOptions
	server  *http.Server
	serving sync.WaitGroup
}

// userName is who the exports stand for.
const userName = "localecs"

// Open starts the cluster and serves its API.
func Open(o APIOptions) (*APIServer, error) {
	g, err := o.open()
	if err != nil {
		return nil, errors.Join(err, o.Listener.Close())
	}
	s := &APIServer{ground: g, options: o}
	s.key = g.identities.PutUser(iam.Admin(userName, o.Cluster.AWS()))
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
func (s *APIServer) URL() string { return "http://" + s.options.Listener.Addr().String() }

// Region is the ECS that is served, nil where tasks have no processes.
func (s *APIServer) Region() *cluster.Region { return s.ground.region }

// Lost is closed when no task can run any more; Err says why.
func (s *APIServer) Lost() <-chan struct{} { return s.ground.lost }

// Err is why no task can run any more, nil as long as they can.
func (s *APIServer) Err() error { return s.ground.err() }

// Close takes the API away, then kills the tasks and gives everything back.
func (s *APIServer) Close() error {
	err := s.server.Close()
	s.serving.Wait()
	return errors.Join(err, s.ground.close())
}

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// Exports are what makes AWS's command line and SDKs call this ECS.
func (s *APIServer) Exports() []Variable {
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
