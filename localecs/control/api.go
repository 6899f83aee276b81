package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// APIOptions configure an APIServer.
type APIOptions struct {
	// Cluster configures the tasks' cluster; its Observe may be nil.
	Cluster cluster.Options
	// Simulated is the time that steps of tasks without processes take; nil runs processes.
	// With it only Region, Account, Subnet, AtOnce and Roles of Cluster are used.
	Simulated *simulated.Timing
	// Listener is the API's, and is closed by Close. Only the user of this machine may be able
	// to connect to it.
	Listener net.Listener
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is the delay of the API's answers.
	Lag controlplane.Lag
	// Observe, if not nil, gets each new version of a task. It must not block.
	Observe func(task shapes.Task, at time.Time)
	Log     hclog.Logger
}

// APIServer is a running local ECS.
type APIServer struct {
	options APIOptions
	// region is nil for tasks without processes.
	region     *cluster.Region
	closeTasks func() error
	key        iam.Key
	server     *http.Server
	serving    sync.WaitGroup
}

// userName is the user of the exported credentials.
const userName = "localecs"

// Open starts the cluster and serves its API.
func Open(o APIOptions) (*APIServer, error) {
	s := &APIServer{options: o}
	handler, identities, err := s.open()
	if err != nil {
		return nil, errors.Join(err, o.Listener.Close())
	}
	s.key = identities.PutUser(iam.Admin(userName, o.Cluster.AWS()))
	const patience = 30 * time.Second
	s.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		IdleTimeout: 2 * patience,
	}
	s.serving.Go(func() { // until Close
		if err := s.server.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("ECS API stopped serving", logkey.Error, err)
		}
	})
	return s, nil
}

// open starts the cluster, or its simulation.
func (s *APIServer) open() (http.Handler, *iam.Store, error) {
	o := s.options
	if o.Simulated == nil {
		r, err := cluster.OpenRegion(cluster.RegionOptions{Cluster: o.Cluster, Throttle: o.Throttle, Lag: o.Lag,
			Observe: o.Observe, Log: o.Log})
		if err != nil {
			return nil, nil, err
		}
		s.region, s.closeTasks = r, r.Close
		return r.Cluster().AWS(), r.Cluster().Identities(), nil
	}
	w, err := simulated.Open(simulated.Options{
		Region: o.Cluster.Region, Account: o.Cluster.Account, Subnet: o.Cluster.Subnet, AtOnce: o.Cluster.AtOnce,
		Roles:  o.Cluster.Roles,
		Timing: *o.Simulated, Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe, Log: o.Log,
	})
	if err != nil {
		return nil, nil, err
	}
	s.closeTasks = func() error {
		w.Close()
		return nil
	}
	return w, w.Identities, nil
}

// url returns the address of ECS, STS and IAM.
func (s *APIServer) url() string { return "http://" + s.options.Listener.Addr().String() }

// Region returns the served ECS, nil for tasks without processes.
func (s *APIServer) Region() *cluster.Region { return s.region }

// Close closes the API, kills the tasks and releases everything.
func (s *APIServer) Close() error {
	err := s.server.Close()
	s.serving.Wait()
	return errors.Join(err, s.closeTasks())
}

// Exports returns the variables with which the AWS command line and SDKs call this ECS, each
// NAME=VALUE.
func (s *APIServer) Exports() []string {
	return cluster.Environment(s.url(), s.key, s.options.Cluster.Region)
}

// CheckLoopback refuses an address that other machines can reach: a caller of the API can run
// programs here.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q: want HOST:PORT such as 127.0.0.1:0: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q: want a loopback address such as 127.0.0.1:0: a caller of the API can run programs here",
			address)
	}
	return nil
}

// Event returns a new version of a task as EventBridge delivers it, "ECS Task State Change": the task
// as DescribeTasks shows it, with times as text, attachments of type eni, no tags, and updatedAt.
func Event(t shapes.Task, at time.Time) ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var detail map[string]any
	if err := json.Unmarshal(text, &detail); err != nil {
		return nil, err
	}
	delete(detail, "tags")
	for name, value := range detail {
		if seconds, ok := value.(float64); ok && strings.HasSuffix(name, "At") {
			detail[name] = stamp(time.UnixMilli(int64(seconds*1000 + 0.5)))
		}
	}
	detail["updatedAt"] = stamp(at)
	attachments, _ := detail["attachments"].([]any)
	for _, a := range attachments {
		if a, ok := a.(map[string]any); ok {
			a["type"] = "eni"
		}
	}
	arn := strings.Split(t.TaskARN, ":") // arn:aws:ecs:region:account:task/...
	return json.Marshal(map[string]any{
		"version": "0", "id": uuid.New().String(), "detail-type": "ECS Task State Change", "source": "aws.ecs",
		"account": arn[4], "region": arn[3], "time": at.UTC().Format(time.RFC3339), "resources": []string{t.TaskARN},
		"detail": detail,
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
