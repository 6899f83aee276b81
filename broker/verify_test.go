package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestVerification(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{contradictingTagIsAudited, revisionIsDescribedOnce, failureOfECSIsNoProofOfAbsence,
		causeOfALateFailureOfECSIsLogged, eachCauseOfAFailureOfECSIsLoggedAtOnce})
}

func TestVerificationOfATask(t *testing.T) {
	t.Parallel()
	set := func(change func(*types.Task)) func(*Rules, *types.Task) {
		return func(_ *Rules, t *types.Task) { change(t) }
	}
	container := func(o types.ContainerOverride) func(*Rules, *types.Task) {
		return set(func(t *types.Task) { t.Overrides.ContainerOverrides = []types.ContainerOverride{o} })
	}
	for name, tt := range map[string]struct {
		change func(*Rules, *types.Task)
		want   string // status and code
	}{
		"as it should be": {func(*Rules, *types.Task) {}, ""},
		"pending":         {set(func(t *types.Task) { t.LastStatus = aws.String("PENDING") }), ""},
		"activating":      {set(func(t *types.Task) { t.LastStatus = aws.String("ACTIVATING") }), ""},
		"provisioning": {set(func(t *types.Task) { t.LastStatus, t.Attachments = aws.String("PROVISIONING"), nil }),
			"425 no_network"},
		"deactivating":   {set(func(t *types.Task) { t.LastStatus = aws.String("DEACTIVATING") }), "410 stopping"},
		"stopped":        {set(func(t *types.Task) { t.LastStatus = aws.String("STOPPED") }), "410 stopping"},
		"unknown status": {set(func(t *types.Task) { t.LastStatus = nil }), "410 stopping"},
		"to be stopped":  {set(func(t *types.Task) { t.DesiredStatus = aws.String("STOPPED") }), "410 stopping"},
		"another cluster": {set(func(t *types.Task) { t.ClusterArn = aws.String(clusterARN + "2") }),
			"404 unknown_task"},
		"another task": {set(func(t *types.Task) { t.TaskArn = aws.String(taskARN(2)) }), "404 unknown_task"},
		"no interface": {set(func(t *types.Task) { t.Attachments = nil }), "422 network_mode"},
		"no interface yet": {set(func(t *types.Task) { t.LastStatus, t.Attachments = aws.String("PENDING"), nil }),
			"425 no_network"},
		"two interfaces": {set(func(t *types.Task) { t.Attachments = append(t.Attachments, t.Attachments...) }),
			"422 network_mode"},
		"attaching": {set(func(t *types.Task) { t.Attachments[0].Status = aws.String("ATTACHING") }),
			"425 no_network"},
		"other attachment": {set(func(t *types.Task) {
			t.Attachments = append(t.Attachments, types.Attachment{Type: aws.String("Service Connect")})
		}), ""},
		"no address": {set(func(t *types.Task) { t.Attachments[0].Details = nil }), "425 no_network"},
		"outside":    {set(func(t *types.Task) { t.Attachments = interfaceAt("192.0.2.1") }), "422 address"},
		"not an address": {set(func(t *types.Task) { t.Attachments = interfaceAt("10.0.0.1.example.com") }),
			"422 address"},
		"loopback": {func(r *Rules,
			t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("127.0.0.1")
		}, "422 address"},
		"metadata": {func(r *Rules,
			t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("169.254.169.254")
		}, "422 address"},
		"task metadata": {func(r *Rules,
			t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("169.254.170.2")
		}, "422 address"},
		"unspecified": {func(r *Rules,
			t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("0.0.0.0")
		}, "422 address"},
		"multicast": {func(r *Rules,
			t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("224.0.0.1")
		}, "422 address"},
		"mapped loopback": {func(r *Rules, t *types.Task) {
			r.Networks = anywhere()
			t.Attachments = interfaceAt("::ffff:127.0.0.1")
		}, "422 address"},
		"command": {container(types.ContainerOverride{Command: []string{"sh"}}), "422 overrides"},
		"environment": {container(types.ContainerOverride{Environment: []types.KeyValuePair{{}}}),
			"422 overrides"},
		"environment file": {container(types.ContainerOverride{EnvironmentFiles: []types.EnvironmentFile{{}}}),
			"422 overrides"},
		"cpu": {container(types.ContainerOverride{Cpu: aws.Int32(1)}), ""},
		"task role": {set(func(t *types.Task) { t.Overrides.TaskRoleArn = aws.String("arn") }),
			"422 overrides"},
		"execution role": {set(func(t *types.Task) { t.Overrides.ExecutionRoleArn = aws.String("arn") }),
			"422 overrides"},
		"permitted overrides": {func(r *Rules,
			t *types.Task) {
			r.AllowOverrides = true
			t.Overrides.TaskRoleArn = aws.String("arn")
		}, ""},
		"without overrides": {set(func(t *types.Task) { t.Overrides = nil }), ""},
		"family":            {func(r *Rules, _ *types.Task) { r.Families = []string{"web"} }, ""},
		"other family":      {func(r *Rules, _ *types.Task) { r.Families = []string{"db", "we"} }, "422 family"},
		"group":             {func(r *Rules, _ *types.Task) { r.Groups = []string{"service:*"} }, ""},
		"other group":       {func(r *Rules, _ *types.Task) { r.Groups = []string{"family:*"} }, "422 group"},
		"started by":        {func(r *Rules, _ *types.Task) { r.StartedBy = []string{"ecs-svc/*"} }, ""},
		"started by another": {func(r *Rules,
			t *types.Task) {
			r.StartedBy = []string{"ecs-svc/*"}
			t.StartedBy = nil
		}, "422 started_by"},
		"exec": {func(r *Rules, t *types.Task) {
			r.RefuseExecuteCommand, t.EnableExecuteCommand = true, true
		}, "422 execute_command"},
		"definition": {set(func(t *types.Task) { t.TaskDefinitionArn = aws.String("web:7") }),
			"422 definition"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				task := runningTask(taskARN(1), "10.0.1.1")
				tt.change(&w.options.Rules, task)
				ip, err := w.options.Rules.check(w.options.Rules.Clusters[0], taskARN(1), task)
				if got := coded(err); got != tt.want {
					t.Errorf("got %q (%v), want %q", got, err, tt.want)
				}
				if err == nil && ip.String() != "10.0.1.1" {
					t.Errorf("address %s", ip)
				}
			})
		})
	}
}

// coded returns the status and code of an answer.
func coded(err error) string {
	if err == nil {
		return ""
	}
	var r *refusal
	if !errors.As(err, &r) {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", r.status, r.code)
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	tags := func(pairs ...string) (all []types.Tag) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
		}
		return all
	}
	for name, tt := range map[string]struct {
		labels annotations
		tags   []types.Tag
		trust  bool
		// taskLife is the rule of that name.
		taskLife bool
		want     string // policies, ttl and contradicting tags, or the refusal
	}{
		"policies":           {labels: annotations{policiesLabel: " default, ,web"}, want: "[default web] 72h0m0s []"},
		"separated by space": {labels: annotations{policiesLabel: "default web\t"}, want: "[default web] 72h0m0s []"},
		"repeated":           {labels: annotations{policiesLabel: "web,web"}, want: "[web] 72h0m0s []"},
		"no policies":        {want: "422 policies"},
		"empty policies":     {labels: annotations{policiesLabel: " , "}, want: "422 policies"},
		"not permitted":      {labels: annotations{policiesLabel: "web,admin"}, want: "422 policies"},
		"management":         {labels: annotations{policiesLabel: "global-management"}, want: "422 policies"},
		"root":               {labels: annotations{policiesLabel: "root"}, want: "422 policies"},
		"Management":         {labels: annotations{policiesLabel: "Global-Management"}, want: "422 policies"},
		"ROOT":               {labels: annotations{policiesLabel: "app ROOT"}, want: "422 policies"},
		"root, no-break":     {labels: annotations{policiesLabel: "Root\u00a0"}, want: "422 policies"},
		"ttl":                {labels: annotations{policiesLabel: "web", ttlLabel: "1m"}, want: "[web] 1m0s []"},
		"longest":            {labels: annotations{policiesLabel: "web", ttlLabel: "168h"}, want: "[web] 168h0m0s []"},
		"too long":           {labels: annotations{policiesLabel: "web", ttlLabel: "168h1s"}, want: "422 ttl"},
		"negative":           {labels: annotations{policiesLabel: "web", ttlLabel: "-1h"}, want: "422 ttl"},
		"too short":          {labels: annotations{policiesLabel: "web", ttlLabel: "30s"}, want: "422 ttl"},
		"task":               {labels: annotations{policiesLabel: "web", ttlLabel: "task"}, want: "422 ttl"},
		"permitted task": {labels: annotations{policiesLabel: "web", ttlLabel: "task"}, taskLife: true,
			want: "[web] 0s []"},
		"not a duration": {labels: annotations{policiesLabel: "web", ttlLabel: "x"}, want: "422 ttl"},
		"contradicting tag": {labels: annotations{policiesLabel: "web"}, tags: tags(policiesLabel, "default"),
			want: "[web] 72h0m0s [" + policiesLabel + "]"},
		"tag alone": {tags: tags(policiesLabel, "web"), want: "422 policies"},
		"trusted tag": {tags: tags(policiesLabel, "web default", ttlLabel, "2h", "x", "y"), trust: true,
			want: "[web default] 2h0m0s []"},
		"label beats tag": {labels: annotations{policiesLabel: "web"}, tags: tags(policiesLabel, "default"),
			trust: true, want: "[web] 72h0m0s [" + policiesLabel + "]"},
		"tag like the label": {labels: annotations{policiesLabel: "web,app"}, tags: tags(policiesLabel, "web app"),
			want: "[web app] 72h0m0s []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Rules{Policies: []string{"default", "w*", "app", "*-management", "*-Management", "[rR]*"},
				TrustTags: tt.trust, TaskLife: tt.taskLife}
			s, err := r.annotations(tt.labels, tt.tags)
			got := fmt.Sprint(s.policies, s.ttl, s.contradicting)
			if err != nil {
				got = coded(err)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLabelsOfContainersMustAgree(t *testing.T) {
	t.Parallel()
	d := &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{
		{DockerLabels: map[string]string{policiesLabel: "web"}},
		{Name: "b", DockerLabels: map[string]string{ttlLabel: "1h"}},
	}}
	got, err := labels(d)
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "labels", got, annotations{policiesLabel: "web", ttlLabel: "1h"})
	d.ContainerDefinitions[1].DockerLabels[policiesLabel] = "web,admin"
	_, err = labels(d)
	testkit.ErrorContains(t, err,
		`container "b" has a different docker label consul.hashicorp.com/policies than an earlier container`)
}

func contradictingTagIsAudited(t *testing.T, w *fixture) {
	c := w.task(1)
	w.ecs.change(c.arn, func(t *types.Task) {
		t.Tags = []types.Tag{{Key: aws.String(policiesLabel), Value: aws.String("default")}}
	})
	accepted(t, c.ask())
	advance(time.Second)
	if !slices.Equal(w.backend.issued[0].Policies, []string{"app"}) || !strings.Contains(w.audit.String(),
		`"contradicting_tags":["consul.hashicorp.com/policies"]`) {
		t.Errorf("policies %v, audit log\n%s", w.backend.issued[0].Policies, w.audit)
	}
}

// 200 tasks at once need three calls, besides those that the burst sends at once.
func TestDescribeTasksIsBatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &fakeECS{tasks: map[string]*types.Task{}}
		run := func(job func(context.Context)) bool {
			go job(t.Context())
			return true
		}
		l := newLookups(source, run, func() {}, func(error) {})
		var asking sync.WaitGroup
		for n := range 2000 {
			source.tasks[taskARN(n)] = runningTask(taskARN(n), "10.0.0.1")
		}
		for n := range 2000 {
			arn := taskARN(n)
			asking.Go(func() {
				if task, err := l.task(t.Context(), clusterARN, arn); err != nil || *task.TaskArn != arn {
					t.Errorf("%v, %v", task, err)
				}
			})
		}
		start := time.Now()
		asking.Wait()
		most, total := slices.Max(source.calls), 0
		for _, n := range source.calls {
			total += n
		}
		if most > 100 || total != 2000 {
			t.Errorf("calls with %v tasks", source.calls)
		}
		if calls, budget := float64(len(source.calls)), 5+10*time.Since(start).Seconds(); calls > budget+1 {
			t.Errorf("%v calls in %s", calls, time.Since(start))
		}
	})
}

func revisionIsDescribedOnce(t *testing.T, w *fixture) {
	for n := range 5 {
		accepted(t, w.task(n+1).ask())
	}
	advance(time.Second)
	if w.ecs.defs != 1 {
		t.Errorf("%d calls of DescribeTaskDefinition", w.ecs.defs)
	}
}

func failureOfECSIsNoProofOfAbsence(t *testing.T, w *fixture) {
	c := w.task(1)
	w.ecs.fault = func() error { return errFault }
	wantRefused(t, c.ask(), http.StatusBadGateway, "ecs")
}

// causeOfALateFailureOfECSIsLogged: a call that fails after the task was answered is in the log with
// its cause, once in a while.
func causeOfALateFailureOfECSIsLogged(t *testing.T, w *fixture) {
	c := w.task(1)
	w.ecs.fault = func() error { <-time.After(requestLimit + time.Second); return errFault }
	wantRefused(t, c.ask(), http.StatusBadGateway, "ecs")
	advance(2 * time.Second)
	const warning = "[WARN]  ECS does not describe tasks: error=fault"
	if n := strings.Count(w.log.String(), warning); n != 1 {
		t.Errorf("%d warnings in %s", n, w.log)
	}
	w.ecs.fault = func() error { return errFault }
	c.ask()
	if n := strings.Count(w.log.String(), warning); n != 1 {
		t.Errorf("%d warnings within 10 s", n)
	}
	advance(time.Minute)
	w.ecs.fault, w.ecs.defFault = nil, w.ecs.fault
	c.ask()
	if n := strings.Count(w.log.String(), warning); n != 2 {
		t.Errorf("%d warnings after DescribeTaskDefinition has failed", n)
	}
}

// eachCauseOfAFailureOfECSIsLoggedAtOnce: a fault that hides behind another one would be looked for in
// vain.
func eachCauseOfAFailureOfECSIsLoggedAtOnce(t *testing.T, w *fixture) {
	for n, text := range []string{"throttled", "throttled", "access denied", "throttled", "access denied"} {
		w.ecs.fail(errors.New(text))
		wantRefused(t, w.task(n+1).ask(), http.StatusBadGateway, "ecs")
	}
	log := w.log.String()
	for line, want := range map[string]int{
		"[WARN]  ECS does not describe tasks: error=throttled":       1,
		"[DEBUG] ECS does not describe tasks: error=throttled":       2,
		`[WARN]  ECS does not describe tasks: error="access denied"`: 1,
		`[DEBUG] ECS does not describe tasks: error="access denied"`: 1,
	} {
		if n := strings.Count(log, line); n != want {
			t.Errorf("%d lines %s, want %d, in %s", n, line, want, log)
		}
	}
}

func anywhere() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} }
