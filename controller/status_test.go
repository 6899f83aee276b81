package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil"
)

// agreeing returns three instances of a service, their proxies and tokens, and the ECS service that runs them.
func agreeing() *statusFacts {
	f := &statusFacts{
		proxies: map[nodeObject]bool{}, failing: map[nodeObject]bool{}, tokens: map[string]int{},
		sessions: map[string]int{}, tasks: map[string]awsutil.ECSTask{},
		ecs: map[rowKey][]awsutil.ECSService{{name: "api"}: {{Name: "api-svc", Desired: 3, Running: 3}}},
	}
	for _, task := range []string{"1", "2", "3"} {
		i := instance{Service: Service{Node: "n", ID: "api-" + task, Task: task}, name: "api",
			meta: map[string]string{"mesh-init-version": "v1", "envoy-version": "1.40.0"}}
		f.instances = append(f.instances, i)
		f.proxies[nodeObject{"n", i.ID + "-sidecar-proxy"}] = true
		f.tokens[task], f.sessions[i.ID] = 2, 1
	}
	return f
}

func TestStatusOfAService(t *testing.T) {
	t.Parallel()
	setService := func(f *statusFacts, s awsutil.ECSService) {
		s.Name = "api-svc"
		f.ecs[rowKey{name: "api"}] = []awsutil.ECSService{s}
	}
	for name, tc := range map[string]struct {
		change   func(*statusFacts)
		problems []string
		remarks  []string
	}{
		"all agree": {func(*statusFacts) {}, nil, nil},
		"one not registered": {func(f *statusFacts) { f.instances = f.instances[1:] },
			[]string{"3 running, 2 registered"}, nil},
		"one does not run": {func(f *statusFacts) { setService(f, awsutil.ECSService{Desired: 4, Running: 3}) },
			[]string{"4 desired, 3 running"}, nil},
		"a deployment": {
			func(f *statusFacts) { setService(f, awsutil.ECSService{Desired: 2, Running: 3, Deploying: true}) },
			[]string{"2 desired, 3 running"}, []string{"a deployment is in progress"},
		},
		"a deployment that failed": {
			func(f *statusFacts) {
				setService(f, awsutil.ECSService{Desired: 3, Running: 3, Failure: "tasks failed to start"})
			},
			[]string{"ECS service api-svc: tasks failed to start"}, nil,
		},
		"a check of the service": {func(f *statusFacts) { f.failing[nodeObject{"n", "api-1"}] = true },
			[]string{"3 registered, 2 passing"}, nil},
		"a check of the proxy": {func(f *statusFacts) { f.failing[nodeObject{"n", "api-2-sidecar-proxy"}] = true },
			[]string{"3 registered, 2 passing"}, nil},
		"a check of the node": {func(f *statusFacts) { f.failing[nodeObject{"n", ""}] = true },
			[]string{"3 registered, 0 passing"}, nil},
		"no proxy": {func(f *statusFacts) { delete(f.proxies, nodeObject{"n", "api-1-sidecar-proxy"}) },
			[]string{"1 without a proxy"}, nil},
		"a deleted token":    {func(f *statusFacts) { delete(f.tokens, "2") }, []string{"1 without a token"}, nil},
		"logins are off":     {func(f *statusFacts) { f.tokens = map[string]int{} }, nil, nil},
		"tokens are unknown": {func(f *statusFacts) { f.tokens = nil }, nil, nil},
		"ECS is unknown":     {func(f *statusFacts) { f.ecs, f.instances = nil, f.instances[1:] }, nil, nil},
		"versions of Envoy": {
			func(f *statusFacts) { f.instances[0].meta["envoy-version"] = "1.39.0" }, nil,
			[]string{"2 versions of Envoy"},
		},
		"an unknown version": {func(f *statusFacts) { f.instances[0].meta = nil }, nil, nil},
		"a gateway's own ID": {func(f *statusFacts) { f.proxies = nil; setKind(f, "mesh-gateway") }, nil, nil},
		"a service of no ECS": {func(f *statusFacts) { f.ecs = map[rowKey][]awsutil.ECSService{} },
			[]string{"0 running, 3 registered"}, nil},
		"tasks of RunTask": {
			func(f *statusFacts) {
				f.ecs = map[rowKey][]awsutil.ECSService{}
				for _, i := range f.instances {
					f.tasks[i.Task] = awsutil.ECSTask{LastStatus: "RUNNING", Group: "family:api"}
				}
			}, nil, nil,
		},
		"two services and a task of RunTask": {
			func(f *statusFacts) {
				f.ecs[rowKey{name: "api"}] = []awsutil.ECSService{{Desired: 1, Running: 1}, {Desired: 1, Running: 1}}
				f.tasks["1"] = awsutil.ECSTask{LastStatus: "RUNNING", Group: "family:api"}
				f.tasks["2"] = awsutil.ECSTask{LastStatus: "RUNNING", Group: "service:api"}
			}, nil, nil,
		},
		"dead tasks": {
			func(f *statusFacts) {
				setService(f, awsutil.ECSService{Desired: 1, Running: 1})
				f.tasks["1"], f.tasks["2"] = awsutil.ECSTask{LastStatus: "STOPPED"}, awsutil.ECSTask{ID: "2"}
			},
			[]string{"1 running, 3 registered", "1 registered but STOPPED in ECS",
				"1 registered but unknown to ECS"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := agreeing()
			tc.change(f)
			rows := f.rows()
			if len(rows) != 1 {
				t.Fatalf("%d rows, want 1", len(rows))
			}
			want, got := [][]string{tc.problems, tc.remarks}, [][]string{rows[0].Problems, rows[0].Remarks}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func setKind(f *statusFacts, kind string) {
	for i := range f.instances {
		f.instances[i].kind = kind
	}
}
