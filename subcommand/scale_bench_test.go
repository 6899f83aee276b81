package subcommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/healthsync"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	scaleMethod = "iam-ecs-service-token"
	// scaleRest is two refreshes of a task, and twelve renewals of its session.
	scaleRest = time.Minute
	// scalePace is the time between two starts, or ends, of tasks, and scaleTogether how
	// many start, or end, at the same time: servers on two cores that get more lose their
	// leader.
	scalePace     = 50 * time.Millisecond
	scaleTogether = 16
	// scaleInstances are the tasks of a service: the servers look through them all when
	// mesh-init reads its proxy.
	scaleInstances = 20
)

// BenchmarkServers measures what 2,000 tasks without an agent cost a leader and two followers:
// what mesh-init asks for, then health-sync, in this process. Its log has the table of
// docs/SCALE.md.
func BenchmarkServers(b *testing.B) {
	for _, sessions := range []bool{false, true} {
		b.Run(fmt.Sprintf("sessions=%v", sessions), func(b *testing.B) {
			for b.Loop() {
				newScale(b, sessions).run(b, 2000)
			}
		})
	}
}

// TestIdleTasksCauseNoWrites: neither the refresh of checks nor the renewal of a session
// is a write of the servers' log.
func TestIdleTasksCauseNoWrites(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, sessions := range []bool{false, true} {
		t.Run(fmt.Sprintf("sessions=%v", sessions), func(t *testing.T) {
			t.Parallel()
			newScale(t, sessions).run(t, 50)
		})
	}
}

// scale is three Consul servers and the tasks at them.
type scale struct {
	servers  []*scaleServer
	port     int
	admin    *api.Client
	bearer   string
	sessions bool
}

func newScale(t testing.TB, sessions bool) *scale {
	s := &scale{sessions: sessions}
	s.start(t)
	sts := awstest.Start(awstest.Role{Account: benchAccount, Path: "/consul-ecs/", Name: "web",
		Tags: map[string]string{config.TagServiceName: "web"}})
	t.Cleanup(sts.Stop)
	var err error
	if s.bearer, err = sts.Bearer(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: scaleMethod, Type: "aws-iam",
		Config: map[string]any{
			"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::" + benchAccount + ":role/consul-ecs/*"},
			"EnableIAMEntityDetails": true,
			"STSEndpoint":            sts.URL, "IAMEndpoint": sts.URL,
		}}, nil)
	rules := `service_prefix "web-" { policy = "write" } service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`
	if sessions {
		rules += ` session "` + benchCluster + `" { policy = "write" }`
	}
	if err == nil {
		_, _, err = s.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: "task", Rules: rules}, nil)
	}
	if err == nil {
		_, _, err = s.admin.ACL().RoleCreate(&api.ACLRole{Name: "task",
			Policies: []*api.ACLRolePolicyLink{{Name: "task"}}}, nil)
	}
	if err == nil {
		_, _, err = s.admin.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: scaleMethod, BindType: "role",
			BindName: "task"}, nil)
	}
	if err == nil { // as the controller makes it
		_, err = s.admin.Catalog().Register(&api.CatalogRegistration{Node: benchCluster, Address: "10.0.0.1",
			NodeMeta: map[string]string{config.NodeMetaSynthetic: "true"}}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run takes tasks through their lives, and logs the cost of each part of it.
func (s *scale) run(t testing.TB, tasks int) {
	t.Helper()
	phase := func(name string, do func()) cost {
		before, begin := s.measure(t), time.Now()
		do()
		return s.measure(t).since(before).report(t, name, tasks, time.Since(begin))
	}
	await(t, 15*time.Second) // for what follows the election of the leader
	alone := phase("without tasks", func() { await(t, scaleRest) })
	all := make([]*scaleTask, tasks)
	phase("start", func() {
		together(t, tasks, func(i int) (err error) {
			all[i], err = s.begin(t, i)
			return err
		})
	})
	await(t, 5*time.Second) // for what follows a start
	rest := phase("rest", func() { await(t, scaleRest) })
	phase("end", func() {
		together(t, tasks, func(i int) error { return all[i].end() })
	})
	if rest.writes > alone.writes+2 { // of the servers themselves, some a minute
		t.Errorf("%d writes while %d tasks were at rest, and %d without tasks", rest.writes, tasks, alone.writes)
	}
	if renewals := rest.renewals; s.sessions != (renewals > 0) {
		t.Errorf("%v renewals of sessions at rest", renewals)
	}
	if left, _, err := s.admin.Catalog().NodeServiceList(benchCluster, nil); err != nil || len(left.Services) > 0 {
		t.Errorf("services that are left: %v", err)
	}
}

func await(t testing.TB, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// together does something for each task, at scalePace and for at most scaleTogether of
// them at the same time.
func together(t testing.TB, tasks int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	pace := time.NewTicker(scalePace)
	defer pace.Stop()
	for range scaleTogether {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < tasks; i = int(next.Add(1)) - 1 {
				<-pace.C
				if err := do(i); err != nil {
					t.Errorf("task %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// scaleTask is a task whose containers are healthy until it ends.
type scaleTask struct {
	task    workload.Task
	passing chan struct{} // closed when its checks are
	written sync.Once
	stopped atomic.Bool
	cancel  context.CancelFunc
	done    chan error
	registrar.Registrar
}

func (k *scaleTask) Task(context.Context) (workload.Task, error) {
	task := k.task
	if k.stopped.Load() {
		task.Containers = nil
		for _, c := range k.task.Containers {
			c.DesiredStatus, c.KnownStatus = workload.StatusStopped, workload.StatusStopped
			task.Containers = append(task.Containers, c)
		}
	}
	return task, nil
}

func (k *scaleTask) Set(
	ctx context.Context, token string, w workload.Workload, updates []registrar.Update,
) []registrar.Result {
	results := k.Registrar.Set(ctx, token, w, updates)
	if results[0].Err == nil {
		k.written.Do(func() { close(k.passing) })
	}
	return results
}

// begin does what mesh-init does at the servers, starts health-sync and waits until the
// checks are passing.
func (s *scale) begin(t testing.TB, i int) (*scaleTask, error) {
	ctx := t.Context()
	k := &scaleTask{passing: make(chan struct{}), done: make(chan error, 1)}
	doc := strings.NewReplacer(boundCluster, benchCluster, "us-west-2:111122223333:task/mesh/0f9de17a",
		fmt.Sprintf("us-east-1:%s:task/default/%032x", benchAccount, i+1)).Replace(boundTaskDoc)
	var err error
	if k.task, err = workload.ParseTask([]byte(doc)); err != nil {
		return nil, err
	}
	dir := t.TempDir()
	cfg, _, err := config.Parse(fmt.Appendf(nil,
		`{"bootstrapDir":%q,"consulServers":{"hosts":%q,"defaults":{"tls":false},"http":{"port":%d,"https":false}},
"consulLogin":{"enabled":true},"service":{"name":"web-%d","port":8080},"proxy":{"mode":"direct"},"healthSyncContainers":["app"]}`, dir, "exec=echo "+strings.Join(s.addresses(), " "), s.port, i/scaleInstances))
	if err != nil {
		return nil, err
	}
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: *cfg.ConsulServers, DialContext: s.dial,
		Log: hclog.NewNullLogger()})
	if err != nil {
		return nil, err
	}
	client, err := consulutil.NewClient(consulutil.Options{Servers: servers})
	if err != nil {
		return nil, err
	}
	w, err := workload.New(cfg, k.task, "")
	if err != nil {
		return nil, err
	}
	k.Registrar = registrar.New(cfg, client)
	secret, err := s.meshInit(ctx, client, k.Registrar, w, cfg, k.task)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, workload.FileServiceToken), []byte(secret), 0o600)
	}
	if err != nil {
		return nil, err
	}
	ctx, k.cancel = context.WithCancel(ctx)
	go servers.Run(ctx)
	go func() {
		k.done <- healthsync.Run(ctx, healthsync.Options{Config: cfg, StopTimeout: 2 * time.Minute}, healthsync.Deps{
			Metadata: k, Registrar: k,
			AwaitStart: func(context.Context) error { return nil },
			Serves:     func(context.Context, int, string) error { return errors.ErrUnsupported },
			Accepts:    func(context.Context, string) error { return errors.ErrUnsupported },
			LogOut: func(ctx context.Context, secret string) error {
				return consulutil.Logout(ctx, client, secret)
			},
			ReadToken: func(ctx context.Context, secret string) (consulutil.Token, error) {
				return consulutil.ReadToken(ctx, client, secret)
			},
			Log: hclog.NewNullLogger(),
		})
	}()
	select {
	case <-k.passing:
		return k, nil
	case err := <-k.done:
		return nil, fmt.Errorf("health-sync has ended: %w", err)
	case <-time.After(testkit.Patience):
		return nil, errors.New("its checks are not passing")
	}
}

func (s *scale) meshInit(
	ctx context.Context, client *api.Client, r registrar.Registrar, w workload.Workload, cfg *config.Config,
	task workload.Task,
) (string, error) {
	token, err := consulutil.Login(ctx, client, consulutil.LoginParams{Method: scaleMethod, Bearer: s.bearer,
		Meta: workload.LoginMeta(cfg, task)})
	if err != nil {
		return "", err
	}
	// Until the server that is asked knows the token.
	for ctx.Err() == nil {
		if err = r.Register(ctx, token.Secret, w); !consulutil.UnknownToken(err) {
			break
		}
	}
	if err == nil {
		_, err = r.Proxy(ctx, token.Secret, w)
	}
	return token.Secret, err
}

// Hold implements registrar.SessionHolder, which the embedded interface hides.
func (k *scaleTask) Hold(
	ctx context.Context, log hclog.Logger, credentials func() (string, bool), w workload.Workload,
) <-chan struct{} {
	return k.Registrar.(registrar.SessionHolder).Hold(ctx, log, credentials, w)
}

// end stops the task's containers and then health-sync.
func (k *scaleTask) end() error {
	k.stopped.Store(true)
	k.cancel()
	return <-k.done
}
