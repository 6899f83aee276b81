package meshinit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// TestStatusNamesStepsThatLast: the other containers learn of the task at once, and of the
// steps that keep them waiting. What is written late does not replace the outcome.
func TestStatusNamesStepsThatLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &run{
			Options: Options{Config: &config.Config{BootstrapDir: dir}},
			Ports:   Ports{Log: hclog.NewNullLogger()},
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
