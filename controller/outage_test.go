package controller

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/controller/setup"
)

// alwaysLeader is the lock of a cluster's only controller.
type alwaysLeader struct{}

// Lead implements Leader.
func (alwaysLeader) Lead(ctx context.Context, _ func(string) error, lead func(context.Context) error) error {
	return lead(ctx)
}

// noSetup has nothing to do.
type noSetup struct{}

// Ensure implements Setup.
func (noSetup) Ensure(context.Context) ([]setup.Write, error) { return nil, nil }

// TestCleanUpResumesSoonAfterAnOutageOfECS: a controller with its default settings
// removes the tokens of tasks that stopped meanwhile within 30 s, and asks a refusing
// ECS rarely. AWS's SDK, with its own retries, is part of it.
func TestCleanUpResumesSoonAfterAnOutageOfECS(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]struct {
		status int
		code   string
	}{
		"access denied": {http.StatusBadRequest, "AccessDeniedException"},
		"throttled":     {http.StatusBadRequest, "ThrottlingException"},
		"unavailable":   {http.StatusServiceUnavailable, "ServiceUnavailable"},
	} {
		for _, outage := range []time.Duration{10 * time.Minute, 10*time.Minute + 7*time.Second, time.Minute} {
			t.Run(name+" for "+outage.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ecs := awstest.NewECS(t, awstest.ECSOptions{})
					tasks := ecs.Run(awstest.TaskGroup{Family: "web", Count: 3, Cluster: "shop"})
					consul := populated(t, []string{tasks[0][len(tasks[0])-32:], tasks[1][len(tasks[1])-32:]})
					cleaner := inMemory(t, consul, awsutil.NewECSReader(ecs.Config(), awsutil.ECSReaderOptions{}))
					c := New(Options{
						Interval: 10 * time.Second, Rate: awsutil.DefaultECSRate,
						Lock: alwaysLeader{}, Setup: noSetup{}, Cleaner: cleaner,
						Metrics: NewMetrics("v1"), Log: hclog.NewNullLogger(),
					})
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan error)
					go func() { ended <- c.Run(ctx) }()
					<-time.After(5 * time.Minute) // quiet, so at its slowest
					ecs.Fail(func(awstest.ECSCall) (int, string) { return refuse.status, refuse.code })
					ecs.Stop(tasks[:2]...)
					before := ecs.Calls("ListTasks")
					<-time.After(outage)
					calls := ecs.Calls("ListTasks") - before
					ecs.Fail(nil)
					recovered := time.Now()
					for len(consul.accessors()) > 0 && time.Since(recovered) < time.Hour {
						<-time.After(time.Second / 10)
					}
					took := time.Since(recovered)
					t.Logf("%d calls in %s, then cleaned up after %s", calls, outage, took)
					if took > 30*time.Second {
						t.Errorf("tokens are left %s after ECS has recovered", took)
					}
					// One pass each 12 s, of 5 attempts while the SDK has retries left, which are 80.
					passes := int(outage/(12*time.Second)) + 1
					if most := passes + min(4*passes, 80); calls > most {
						t.Errorf("%d calls in %s, want %d at most", calls, outage, most)
					}
					stop()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
