package chaos_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

func TestWithoutLinksAndDefinitions(t *testing.T) {
	t.Parallel()
	targets := chaos.Targets{Containers: map[string][]string{"api": nil}, NoLinks: true}
	faults := []chaos.Fault{
		{Partition: &chaos.Partition{Task: "api", From: chaos.All}},
		{Link: &chaos.Link{Task: "api", KBits: 8}},
		{Kill: &chaos.Kill{Task: "api", Container: "not known here"}},
		{Freeze: &chaos.Process{Task: "api"}},
	}
	var got []string
	for _, err := range chaos.Problems(faults, targets) {
		got = append(got, err.Error())
	}
	if d := cmp.Diff([]string{
		"faults[0].partition: tasks share the host's network: it takes awsvpc networking",
		"faults[1].link: tasks share the host's network: it takes awsvpc networking",
		"faults[3].freeze.container: want a container",
	}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	targets := chaos.Targets{Containers: map[string][]string{"api": {"app", "proxy"}, "web": {"app"}},
		CheckSignal: func(s string) error {
			if s == "NONE" {
				return errors.New("signal NONE")
			}
			return nil
		}}
	app := &chaos.Process{Task: "api", Container: "app"}
	kill := &chaos.Kill{Task: "api", Container: "app", Process: "envoy", Signal: "HUP"}
	for name, test := range map[string]struct {
		fault chaos.Fault
		want  []string
	}{
		"kill":              {fault: chaos.Fault{At: time.Second, Kill: kill}},
		"kill all":          {fault: chaos.Fault{Kill: &chaos.Kill{Task: "api"}}},
		"freeze for a time": {fault: chaos.Fault{For: time.Second, Freeze: app}},
		"server":            {fault: chaos.Fault{Server: chaos.Down}},
		"partition":         {fault: chaos.Fault{Partition: &chaos.Partition{Task: "api", From: chaos.Server}}},
		"endpoint":          {fault: chaos.Fault{Endpoint: &chaos.Endpoint{Name: chaos.STS, Status: 429, Share: 0.5}}},
		"nothing": {chaos.Fault{}, []string{
			"faults[0]: want exactly one of endpoint, kill, oom, freeze, slow, spot, server, partition, link; got " +
				"nothing else",
		}},
		"two kinds": {chaos.Fault{Kill: kill, Server: chaos.Down}, []string{
			"faults[0]: want exactly one of endpoint, kill, oom, freeze, slow, spot, server, partition, link; got " +
				"kill, server, nothing else",
		}},
		"times": {chaos.Fault{For: time.Second, OOM: app}, []string{"faults[0].for: oom ends immediately"}},
		"who": {chaos.Fault{Kill: &chaos.Kill{Task: "db", Container: "app"}},
			[]string{`faults[0].kill: there is no task "db"`}},
		"all are none": {chaos.Fault{Link: &chaos.Link{Task: chaos.All, KBits: 8}},
			[]string{`faults[0].link: there is no task "all"`}},
		"server is none": {chaos.Fault{Partition: &chaos.Partition{Task: chaos.Server, From: chaos.All}},
			[]string{`faults[0].partition: there is no task "server"`}},
		"all's metadata": {chaos.Fault{Endpoint: &chaos.Endpoint{Name: chaos.Metadata, Task: chaos.All, Hang: true}},
			[]string{`faults[0].endpoint: there is no task "all"`}},
		"kill of what": {chaos.Fault{Kill: &chaos.Kill{Signal: "NONE"}},
			[]string{"faults[0].kill.task: want a task",
				"faults[0].kill.container: process and signal need one: without it everything in the task is killed",
				"faults[0].kill.signal: signal NONE"}},
		"a path": {chaos.Fault{Kill: &chaos.Kill{Task: "api", Container: "ap", Process: "/bin/x"}},
			[]string{`faults[0].kill.container: "ap": want one of app, proxy`,
				`faults[0].kill.process: "/bin/x": want the program's name without its directory`}},
		"container": {chaos.Fault{Slow: &chaos.Process{Task: "api", Container: "ap"}},
			[]string{`faults[0].slow.container: "ap": want one of app, proxy`}},
		"server's state": {chaos.Fault{Server: "gone"},
			[]string{`faults[0].server: "gone": want down, frozen or slow`}},
		"oneself": {chaos.Fault{Partition: &chaos.Partition{Task: "api", From: "api"}},
			[]string{"faults[0].partition.from: api cannot be partitioned from itself"}},
		"link": {chaos.Fault{Link: &chaos.Link{Task: "api", KBits: 1}},
			[]string{"faults[0].link.kbits: 1: want 8 or more"}},
		"endpoint's all": {chaos.Fault{Endpoint: &chaos.Endpoint{Name: "s3", Task: "api", Share: 2, Slow: 1,
			Status: 404}}, []string{
			`faults[0].endpoint.name: "s3": want one of metadata, credentials, protection, sts, iam, ecs`,
			"faults[0].endpoint.share: 2: want more than 0, at most 1",
			"faults[0].endpoint: want exactly one of slow, hang, status, cut, wrong, skew, noTags",
			"faults[0].endpoint.status: 404: want 429, 500 or 503",
		}},
		"endpoint's rest": {chaos.Fault{Endpoint: &chaos.Endpoint{Name: chaos.STS, Task: "api", NoTags: true}},
			[]string{
				"faults[0].endpoint.task: sts is the same for all tasks",
				"faults[0].endpoint.noTags: sts has no tags: want iam or ecs",
			}},
		"metadata without tags": {chaos.Fault{Endpoint: &chaos.Endpoint{Name: chaos.Metadata, NoTags: true}}, []string{
			"faults[0].endpoint.noTags: metadata has no tags: want iam or ecs",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range chaos.Problems([]chaos.Fault{test.fault}, targets) {
				got = append(got, err.Error())
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
