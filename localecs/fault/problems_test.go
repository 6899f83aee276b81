package fault_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/fault"
)

func TestWithoutLinksAndDefinitions(t *testing.T) {
	t.Parallel()
	world := fault.World{Containers: map[string][]string{"api": nil}, NoLinks: true}
	faults := []fault.Fault{
		{Partition: &fault.Partition{Task: "api", From: fault.All}},
		{Link: &fault.Link{Task: "api", KBits: 8}},
		{Kill: &fault.Process{Task: "api", Container: "not known here"}},
		{Freeze: &fault.Process{Task: "api"}},
	}
	var got []string
	for _, err := range fault.Problems(faults, world) {
		got = append(got, err.Error())
	}
	if d := cmp.Diff([]string{
		"faults[0].partition: tasks share the host's network: it takes networks of their own",
		"faults[1].link: tasks share the host's network: it takes networks of their own",
		"faults[3].freeze.container: want a container",
	}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	world := fault.World{Containers: map[string][]string{"api": {"app", "proxy"}, "web": {"app"}}}
	app := &fault.Process{Task: "api", Container: "app"}
	for name, test := range map[string]struct {
		fault fault.Fault
		want  []string
	}{
		"kill":              {fault: fault.Fault{At: time.Second, Kill: app}},
		"freeze for a time": {fault: fault.Fault{For: time.Second, Freeze: app}},
		"server":            {fault: fault.Fault{Server: fault.Down}},
		"partition":         {fault: fault.Fault{Partition: &fault.Partition{Task: "api", From: fault.Server}}},
		"endpoint":          {fault: fault.Fault{Endpoint: &fault.Endpoint{Name: fault.STS, Status: 429, Share: 0.5}}},
		"nothing": {fault.Fault{}, []string{
			"faults[0]: want exactly one of endpoint, kill, oom, freeze, slow, spot, server, partition, link; got nothing else",
		}},
		"two kinds": {fault.Fault{Kill: app, Server: fault.Down}, []string{
			"faults[0]: want exactly one of endpoint, kill, oom, freeze, slow, spot, server, partition, link; got kill, server, nothing else",
		}},
		"times":          {fault.Fault{At: -1, For: time.Second, OOM: app}, []string{"faults[0].at: -1ns: want 0 or later", "faults[0].for: oom is over in a moment"}},
		"who":            {fault.Fault{Kill: &fault.Process{Task: "db", Container: "app"}}, []string{`faults[0].kill: there is no task "db"`}},
		"all are none":   {fault.Fault{Link: &fault.Link{Task: fault.All, KBits: 8}}, []string{`faults[0].link: there is no task "all"`}},
		"server is none": {fault.Fault{Partition: &fault.Partition{Task: fault.Server, From: fault.All}}, []string{`faults[0].partition: there is no task "server"`}},
		"all's metadata": {fault.Fault{Endpoint: &fault.Endpoint{Name: fault.Metadata, Task: fault.All, Hang: true}}, []string{`faults[0].endpoint: there is no task "all"`}},
		"container":      {fault.Fault{Slow: &fault.Process{Task: "api", Container: "ap"}}, []string{`faults[0].slow.container: "ap": want one of app, proxy`}},
		"server's state": {fault.Fault{Server: "gone"}, []string{`faults[0].server: "gone": want down, frozen or slow`}},
		"oneself":        {fault.Fault{Partition: &fault.Partition{Task: "api", From: "api"}}, []string{"faults[0].partition.from: api cannot be kept from itself"}},
		"link":           {fault.Fault{Link: &fault.Link{Task: "api", KBits: 1}}, []string{"faults[0].link.kbits: 1: want 8 or more"}},
		"endpoint's all": {fault.Fault{Endpoint: &fault.Endpoint{Name: "s3", Task: "api", Share: 2, Slow: -1, Status: 404}}, []string{
			`faults[0].endpoint.name: "s3": want one of metadata, credentials, protection, sts, iam, ecs`,
			"faults[0].endpoint.share: 2: want more than 0, at most 1",
			"faults[0].endpoint: want exactly one of slow, hang, status, cut, wrong, skew, noTags",
			"faults[0].endpoint.slow: -1ns: want how late the answer is",
			"faults[0].endpoint.status: 404: want 429, 500 or 503",
		}},
		"endpoint's rest": {fault.Fault{Endpoint: &fault.Endpoint{Name: fault.STS, Task: "api", NoTags: true}}, []string{
			"faults[0].endpoint.task: sts is the same for all tasks",
			"faults[0].endpoint.noTags: sts has no tags",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range fault.Problems([]fault.Fault{test.fault}, world) {
				got = append(got, err.Error())
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
