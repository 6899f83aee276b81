package cluster

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// lines returns what a container printed until it was ready.
func (s *taskFixture) lines(container string) []string {
	s.t.Helper()
	text, _, _ := strings.Cut(s.await(container).log(container), "ready ")
	return strings.Split(strings.TrimSpace(text), "\n")
}

func (s *taskFixture) wantLines(container string, want ...string) {
	s.t.Helper()
	if got := s.lines(container); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("%s: %q, want %q", container, got, want)
	}
}

func named(family string) func(*taskdef.TaskDefinition) {
	return func(d *taskdef.TaskDefinition) { d.Family = family }
}

func TestConformancePortsAreTheTasks(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	first := w.startTask(t, named("first"),
		checked(helper("a", "net", "listen=127.0.0.1:9000", "listen=:9001", "listen=0.0.0.0:80"), 1, "CMD", "/bin/helper", "equal", "1", "1"),
		after(helper("b", "net", "dial=127.0.0.1:9000", "listen=127.0.0.1:9000"), "a", "HEALTHY"))
	// Port 80 is free, although metadata is served at 169.254.170.2:80.
	first.wantLines("a", "listen=127.0.0.1:9000 ok", "listen=:9001 ok", "listen=0.0.0.0:80 ok")
	first.wantLines("b", "dial=127.0.0.1:9000 ok hello from 127.0.0.1:9000 true", "listen=127.0.0.1:9000 EADDRINUSE")
	second := w.startTask(t, named("second"), helper("c", "net",
		"listen=127.0.0.1:9000", "listen=:9001", "dial="+first.IP()+":9001", "dial="+first.IP()+":9000"))
	second.wantLines("c", "listen=127.0.0.1:9000 ok", "listen=:9001 ok",
		"dial="+first.IP()+":9001 ok hello from [::]:9001 true",
		"dial="+first.IP()+":9000 ECONNREFUSED  true") // a's loopback is only a's
	if first.IP() == second.IP() {
		t.Error("both tasks have one address")
	}
}

func TestConformanceNamesOfTheTask(t *testing.T) {
	t.Parallel()
	for region, domain := range map[string]string{"us-east-1": "ec2.internal", "us-west-2": "us-west-2.compute.internal"} {
		w := newTools(t, func(o *Options) {
			o.Region, o.Subnet = region, "10.0.1.0/24"
		})
		script := "for f in hosts hostname resolv.conf; do while read -r l; do echo $l; done < /etc/$f; done; exec /bin/helper run 0s 0"
		s := w.startTask(t, nil, taskdef.Container{Name: "a", Image: "tools", EntryPoint: []string{"/bin/sh", "-c", script}}, printing("b"))
		name := "ip-" + strings.ReplaceAll(s.IP(), ".", "-") + "." + domain
		s.wantLines("a", "127.0.0.1 localhost", s.IP()+" "+name, name, "nameserver 10.0.1.2", "search "+domain)
		if got := s.environment("b")["HOSTNAME"]; got != name || !strings.HasPrefix(s.IP(), "10.0.1.") {
			t.Errorf("HOSTNAME %s, want %s", got, name)
		}
		_, body := s.request("GET", s.base("a"), "")
		for _, want := range []string{`"PrivateDNSName":"` + name + `"`, `"DomainNameServers":["10.0.1.2"]`, `"SubnetGatewayIpv4Address":"10.0.1.1/24"`} {
			if !strings.Contains(body, want) {
				t.Errorf("metadata has no %s: %s", want, body)
			}
		}
	}
}

func TestConformanceProcessesOfATask(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	looking := after(helper("b", "processes"), "a", "START")
	own := w.startTask(t, named("own"), deaf("a", 1), looking)
	own.wantLines("b", "/bin/helper processes")
	shared := w.startTask(t, func(d *taskdef.TaskDefinition) { d.Family, d.PIDMode = "shared", "task" }, deaf("a", 20), looking)
	got := strings.Join(shared.lines("b"), "\n")
	for _, want := range []string{"/bin/sleep 1000", "/bin/helper processes"} {
		if !strings.Contains(got, want) {
			t.Errorf("pidMode task: b does not see %s in\n%s", want, got)
		}
	}
	// Not PID 1, so TERM ends it.
	shared.end().stopped()
	if got := shared.code("a"); got != 143 {
		t.Errorf("sleep under pidMode task: exit code %d, want 143", got)
	}
}

func TestConformanceInstanceMetadataIsUnreachable(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "net", "dial=169.254.169.254:80"))
	// The last word means that the answer came at once.
	if got := s.lines("a")[0]; got != "dial=169.254.169.254:80 EHOSTUNREACH  true" {
		t.Errorf("%s", got)
	}
}

func TestConformanceVolumesAreShared(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	mounted := func(c taskdef.Container, readOnly bool) taskdef.Container {
		c.MountPoints = []taskdef.MountPoint{{SourceVolume: "consul_data", ContainerPath: "/consul", ReadOnly: &readOnly}}
		return c
	}
	withVolume := func(d *taskdef.TaskDefinition) { d.Volumes = []taskdef.Volume{{Name: "consul_data"}} }
	dataplane := mounted(after(helper("dataplane", "read", "/consul/file"), "mesh-init", "SUCCESS"), true)
	dataplane.User = "5995"
	writing := mounted(after(helper("writing", "write", "/consul/other"), "mesh-init", "SUCCESS"), true)
	// volumesFrom: the same mount, writable, and once more read-only.
	no, yes := false, true
	borrowing := after(helper("borrowing", "write", "/consul/third"), "mesh-init", "SUCCESS")
	borrowing.VolumesFrom = []taskdef.VolumeFrom{{SourceContainer: "mesh-init", ReadOnly: &no}}
	reading := after(helper("reading", "write", "/consul/fourth"), "mesh-init", "SUCCESS")
	reading.VolumesFrom = []taskdef.VolumeFrom{{SourceContainer: "mesh-init", ReadOnly: &yes}}
	s := w.startTask(t, withVolume, mounted(optional(taskdef.Container{
		Name: "mesh-init", Image: "tools", EntryPoint: []string{"/bin/sh", "-c", "echo written > /consul/file"},
	}), false), optional(dataplane), writing, borrowing, reading)
	s.wantLines("writing", "/consul/other EROFS")
	s.wantLines("borrowing", "/consul/third ok")
	s.wantLines("reading", "/consul/fourth EROFS")
	testkit.Eventually(t, "the dataplane has read", func() bool { return s.code("dataplane") == 0 })
	if got := s.log("dataplane"); got != "/consul/file ok \"written\\n\"\n" {
		t.Errorf("the dataplane read %s", got)
	}
	next := w.startTask(t, func(d *taskdef.TaskDefinition) { withVolume(d); d.Family = "next" }, mounted(helper("a", "read", "/consul/file"), false))
	next.stopped()
	if got := next.log("a"); got != "/consul/file ENOENT \"\"\n" {
		t.Errorf("the next task read %s", got)
	}
}

func TestConformanceReadOnlyRootRefusesWrites(t *testing.T) {
	t.Parallel()
	yes := true
	a := helper("a", "write", "/x", "/etc/hosts", "/data/x", "/scratch/x")
	a.ReadonlyRootFilesystem = &yes
	a.MountPoints = []taskdef.MountPoint{{SourceVolume: "data", ContainerPath: "/data"}}
	s := startTask(t, func(d *taskdef.TaskDefinition) { d.Volumes = []taskdef.Volume{{Name: "data"}} }, a)
	s.wantLines("a", "/x EROFS", "/etc/hosts EROFS", "/data/x ok", "/scratch/x ENOENT")
}

const (
	dbSecret  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-AbCdEf"
	firstEnv  = "arn:aws:s3:::config/first.env"
	secondEnv = "arn:aws:s3:::config/second.env"
)

func newConfigured(t *testing.T) *fixture {
	t.Helper()
	return newTools(t, func(o *Options) {
		tools := o.Images["tools"]
		tools.Env = append(tools.Env, "A=image", "B=image")
		o.Images["tools"] = tools
		o.Secrets = map[string]string{dbSecret: `{"password":"s3cr3t","port":5432}`, "/web/key": "from ssm"}
		o.EnvironmentFiles = map[string]string{firstEnv: "# first\nB=first\nC=first\nD=first\n", secondEnv: "C=second\nE=\"second\"\nno line\n"}
	})
}

func TestConformanceSourcesOfVariables(t *testing.T) {
	t.Parallel()
	a := printing("a")
	a.EnvironmentFiles = []taskdef.EnvironmentFile{{Value: firstEnv, Type: "s3"}, {Value: secondEnv, Type: "s3"}}
	a.Environment = []taskdef.KeyValue{{Name: "D", Value: "definition"}}
	a.Secrets = []taskdef.Secret{{Name: "PASSWORD", ValueFrom: dbSecret + ":password::"}, {Name: "PORT", ValueFrom: dbSecret + ":port:AWSCURRENT:"}, {Name: "KEY", ValueFrom: "arn:aws:ssm:us-east-1:123456789012:parameter/web/key"}}
	env := newConfigured(t).startTask(t, nil, a).environment("a")
	for name, want := range map[string]string{
		"A": "image", "B": "first", "C": "first", "D": "definition", "E": `"second"`, "PASSWORD": "s3cr3t", "PORT": "5432", "KEY": "from ssm",
	} {
		if env[name] != want {
			t.Errorf("%s=%s, want %s", name, env[name], want)
		}
	}
}

func TestConformanceMissingSecretKeyStopsEverything(t *testing.T) {
	t.Parallel()
	w := newConfigured(t)
	for valueFrom, want := range map[string]string{
		dbSecret + ":user::": "unable to retrieve secret from asm: retrieved secret from Secrets Manager did not contain json key user",
		dbSecret + ":user":   "unable to retrieve secret from asm: unexpected ARN format with parameters when trying to retrieve ASM secret",
		"/web/none":          "unable to retrieve parameters from ssm: invalid parameters: no value for /web/none; add it to the local secrets",
	} {
		a := helper("a", "run", "0s", "0")
		a.Secrets = []taskdef.Secret{{Name: "S", ValueFrom: valueFrom}}
		s := w.startTask(t, nil, a, helper("b", "run", "0s", "0"))
		v := s.stopped()
		const prefix = "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: container a, secret S: "
		if v.StopCode != "TaskFailedToStart" || v.StoppedReason != prefix+want {
			t.Errorf("%s: %s\nwant %s%s", v.StopCode, v.StoppedReason, prefix, want)
		}
		for _, c := range v.Containers {
			testkit.Equal(t, c.Name+": known status", c.KnownStatus, "STOPPED")
			if !c.StartedAt.IsZero() || c.ExitCode != nil {
				t.Errorf("%s started: %+v", c.Name, c)
			}
		}
	}
}

// TestConformanceContainersOnEC2ShareTheirNames: what one container writes, all have; on
// Fargate each has its own files.
func TestConformanceContainersOnEC2ShareTheirNames(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	const read = "for f in hosts resolv.conf; do while read -r l; do echo $l; done < /etc/$f; done; exec /bin/helper run 0s 0"
	shell := func(name, script string) taskdef.Container {
		essential := name == "reads"
		return taskdef.Container{Name: name, Image: "tools", Essential: &essential, EntryPoint: []string{"/bin/sh", "-c", script}}
	}
	for compatibility, shared := range map[string]bool{"EC2": true, "FARGATE": false} {
		protected := after(shell("protected", "echo x >> /etc/hosts || echo refused"), "writes", "SUCCESS")
		protected.ReadonlyRootFilesystem = new(true)
		s := w.startTask(t, func(d *taskdef.TaskDefinition) {
			d.Family, d.RequiresCompatibilities = strings.ToLower(compatibility), []string{compatibility}
			d.CPU, d.Memory = "256", "512"
		},
			shell("writes", "echo 127.65.0.1 api >> /etc/hosts; echo nameserver 10.0.0.9 >> /etc/resolv.conf"),
			protected, after(after(shell("reads", read), "writes", "SUCCESS"), "protected", "SUCCESS"))
		got := strings.Join(s.lines("reads"), "\n")
		for _, line := range []string{"127.65.0.1 api", "nameserver 10.0.0.9"} {
			if strings.Contains(got, line) != shared {
				t.Errorf("%s: another container has the line %q: %v; it has\n%s", compatibility, line, !shared, got)
			}
		}
		if log := s.log("protected"); !strings.Contains(log, "refused") {
			t.Errorf("%s: a read-only root's hosts file was written: %s", compatibility, log)
		}
	}
}
