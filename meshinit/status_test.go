package meshinit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

// TestStatusNamesStepsThatLast: the other containers learn of the task at once, and of the
// steps that keep them waiting. What is written late does not replace the outcome.
func TestStatusNamesStepsThatLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &run{
			options: Options{Config: &config.Config{BootstrapDir: dir}},
			deps:    Deps{Log: hclog.NewNullLogger()},
			task:    workload.Task{TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/default/t1"},
		}
		want := func(o outcome, message string) {
			t.Helper()
			synctest.Wait()
			if s, err := readStatus(dir); err != nil || s != (status{r.task.TaskARN, o, message}) {
				t.Errorf("status %+v, %v; want %s %q", s, err, o, message)
			}
		}
		r.reportStep("first")()
		want(starting, "first")
		r.reportStep("quick")()
		want(starting, "first")
		end := r.reportStep("lasts")
		<-time.After(stepReportAfter)
		want(starting, "lasts")
		end()
		end = r.reportStep("last")
		<-time.After(stepReportAfter)
		end()
		if err := r.reportReady(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		want(ready, "")
	})
}

// atOnce is metadata, Consul and a proxy without files. None of them makes mesh-init wait.
type atOnce struct{}

func (atOnce) Task(context.Context) (workload.Task, error) {
	return workload.Task{Cluster: "prod", TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/prod/t1"}, nil
}
func (atOnce) Register(context.Context, string, workload.Workload) error   { return nil }
func (atOnce) Deregister(context.Context, string, workload.Workload) error { return nil }
func (atOnce) Proxy(context.Context, string, workload.Workload) (bootstrap.Proxy, error) {
	return bootstrap.Proxy{}, nil
}
func (atOnce) KeepsToken() bool { return false }

func (atOnce) Check() error { return nil }
func (atOnce) Files(context.Context, workload.Workload, bootstrap.Proxy, consulutil.Token) ([]File, error) {
	return nil, nil
}

// slowReport has the report of a step take 150 ms: the volume is slow.
type slowReport struct{ *run }

func (slowReport) Suspend() error     { return nil }
func (slowReport) Restore(bool) error { return nil }
func (s slowReport) Apply(bootstrap.Proxy) error {
	slow := make(chan struct{})
	s.reporting = slow
	time.AfterFunc(3*stepReportAfter/2, func() { close(slow) })
	return nil
}

// TestStatusIsReadyAfterASlowReport: the other containers wait for it.
func TestStatusIsReadyAfterASlowReport(t *testing.T) {
	t.Parallel()
	for range 50 { // what is written last was a race
		dir := t.TempDir()
		cfg, _, err := config.Parse(fmt.Appendf(nil, `{"bootstrapDir":%q,"service":{"name":"web","port":9090}}`, dir))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r := &run{
				options: Options{Config: cfg, FileGroup: volume.GroupOfDir, Proxy: atOnce{}, Endpoint: AgentEndpoint(),
					Limit: time.Minute},
				deps: Deps{
					Metadata:    atOnce{},
					Consul:      func() (Consul, error) { return Consul{Registrar: atOnce{}}, nil },
					CopyProgram: func(string) error { return nil },
					Log:         hclog.NewNullLogger(),
				},
			}
			r.deps.Redirect = slowReport{r}
			if err := r.run(context.Background()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			synctest.Wait()
			if s, err := readStatus(dir); err != nil || s.Outcome != ready {
				t.Errorf("status %+v, %v; want ready", s, err)
			}
		})
	}
}
