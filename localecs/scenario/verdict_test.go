package scenario_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestRequestsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	lossy := []scenario.Phase{
		{Answered: 100, Failed: 9, Limits: file.Limits{Max: new(int)}}, // judged by itself
		{Answered: 100, Failed: 1, First: "EOF"},
		{Answered: 100, Failed: 2, First: "reset"},
	}
	for _, c := range []struct {
		name   string
		phases []scenario.Phase
		checks file.Checks
		want   []string
	}{
		{"nothing asked", nil, file.Checks{}, nil},
		{"no traffic", nil, file.Checks{MinRequests: 1}, []string{"only 0 requests were answered; at least 1 must be"}},
		{"losses of phases without limits", lossy, file.Checks{FailedRequests: 2},
			[]string{"3 of 203 requests failed; 2 may. First: EOF"}},
		{"as many as may", lossy, file.Checks{FailedRequests: 3, MinRequests: 300}, nil},
		{"too few in all", lossy, file.Checks{FailedRequests: 3, MinRequests: 301},
			[]string{"only 300 requests were answered; at least 301 must be"}},
	} {
		if diff := cmp.Diff(c.want, scenario.Requests(c.phases, c.checks)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDisorderSparesWhatAStepHasKilled(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	v := scheduler.View{Containers: []scheduler.ContainerView{
		{Name: "fine", KnownStatus: "STOPPED", ExitCode: code(0)},
		{Name: "failed", KnownStatus: "STOPPED", ExitCode: code(1)},
		{Name: "killed", KnownStatus: "STOPPED", ExitCode: code(137)},
		{Name: "slow", KnownStatus: "STOPPED", ExitCode: code(137)},
		{Name: "never", KnownStatus: "STOPPED", Reason: "no image"},
		{Name: "unborn", KnownStatus: "STOPPED"},
		{Name: "up", KnownStatus: "RUNNING"},
	}}
	want := []string{
		"container slow had to be killed", "container never never ran: no image", "container up is still RUNNING",
	}
	if diff := cmp.Diff(want, scenario.Disorder(v, []string{"killed", "unborn"}, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = append([]string{"container failed exited with 1"}, want...)
	if diff := cmp.Diff(want, scenario.Disorder(v, []string{"killed", "unborn"}, true)); diff != "" {
		t.Errorf("clean exits (-want +got):\n%s", diff)
	}
}

func TestFirstFailed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	code := func(n int) *int { return &n }
	v := scheduler.View{Containers: []scheduler.ContainerView{
		{Name: "fine", StartedAt: at, FinishedAt: at, ExitCode: code(0)},
		{Name: "never", ExitCode: code(143)},
		{Name: "second", StartedAt: at, FinishedAt: at.Add(2), ExitCode: code(1)},
		{Name: "first", StartedAt: at, FinishedAt: at.Add(1), ExitCode: code(2)},
		{Name: "runs", StartedAt: at},
	}}
	if got := scenario.FirstFailed(v); got == nil || got.Name != "first" {
		t.Errorf("got %+v", got)
	}
	if got := scenario.FirstFailed(scheduler.View{Containers: v.Containers[:2]}); got != nil {
		t.Errorf("got %+v", got)
	}
}

func TestBlockerDelaysTheStart(t *testing.T) {
	t.Parallel()
	onInit, onProxy := taskdef.Dependency{ContainerName: "init", Condition: "SUCCESS"}, taskdef.Dependency{
		ContainerName: "proxy", Condition: "HEALTHY",
	}
	began, zero, two := time.Unix(1, 0), 0, 2
	waiting := func(on ...taskdef.Dependency) scheduler.ContainerView {
		return scheduler.ContainerView{Name: "app", KnownStatus: "PULLED", WaitsFor: on}
	}
	dropped := waiting(onInit)
	dropped.KnownStatus = "STOPPED"
	running := func(name, health string) scheduler.ContainerView {
		v := scheduler.ContainerView{Name: name, KnownStatus: "RUNNING", StartedAt: began}
		if health != "none" {
			v.Health = &scheduler.HealthView{Status: health}
		}
		return v
	}
	ended := func(code *int) scheduler.ContainerView {
		return scheduler.ContainerView{Name: "init", KnownStatus: "STOPPED", StartedAt: began, ExitCode: code}
	}
	for name, c := range map[string]struct {
		containers []scheduler.ContainerView
		want       string
	}{
		"init runs": {[]scheduler.ContainerView{waiting(onInit), running("init", "none"),
			running("proxy", "HEALTHY")}, "init: app waits for init SUCCESS"},
		"init has failed": {[]scheduler.ContainerView{waiting(onInit), ended(&two), running("proxy", "HEALTHY")},
			"init: init exited with 2"},
		"proxy is starting": {[]scheduler.ContainerView{waiting(onProxy), ended(&zero), running("proxy", "")},
			"proxy: app waits for proxy HEALTHY"},
		"both": {[]scheduler.ContainerView{waiting(onInit, onProxy), running("init", "none"),
			running("proxy", "")}, "init: app waits for init SUCCESS and proxy HEALTHY"},
		"app was dropped": {[]scheduler.ContainerView{dropped, running("init", "none")}, ": "},
		"nothing has run": {[]scheduler.ContainerView{waiting(onInit, onProxy)}, ": "},
		"unhealthy": {[]scheduler.ContainerView{running("app", "UNHEALTHY"), ended(&zero),
			running("proxy", "HEALTHY")}, "app: app is UNHEALTHY"},
		"no verdict so far": {[]scheduler.ContainerView{running("app", ""), ended(&zero), running("proxy", "HEALTHY")},
			"app: app has no health yet"},
		"all well": {[]scheduler.ContainerView{running("app", "none"), ended(&zero), running("proxy", "HEALTHY")},
			": "},
	} {
		container, how := scenario.Blocker(scheduler.View{Containers: c.containers})
		if got := container + ": " + how; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
