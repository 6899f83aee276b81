package meshinit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// In the first deployment the ACL objects and the files of a task appear in any
// order after mesh-init has started.
func TestObjectsMayAppearAfterTheStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// steps are what appears, each once the log has the text before it.
		steps []appears
	}{
		{"auth method, role, binding rule, policy", []appears{
			{"auth method", "ACL not found: auth method", (*fixture).createMethod},
			{"role", "no binding rule of the auth method matches", (*fixture).createRole},
			{"rule", "no binding rule of the auth method matches", (*fixture).createRule},
			{"policy", "attach a policy", (*fixture).attachPolicy},
		}},
		{"CA file", []appears{
			{"everything else", "",
				func(s *fixture) { s.createMethod(); s.createRole(); s.createRule(); s.attachPolicy() }},
			{"CA file", "ca.pem: no such file or directory: correct consulCACertFile", func(s *fixture) {
				if err := os.WriteFile(s.options.Config.ConsulCACertFile, []byte(testkit.OtherCA), 0o600); err != nil {
					s.t.Error(err)
				}
			}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured,
				strings.Replace(loginDoc, trusting,
					"iam-"+strings.ReplaceAll(t.Name()[len("TestObjectsMayAppearAfterTheStart/"):], ",_", "-"), 1))
			if tt.name == "CA file" {
				s.options.Config.ConsulCACertFile = filepath.Join(t.TempDir(), "ca.pem")
			}
			ended := make(chan error, 1)
			first := tt.steps[0]
			if first.after == "" {
				first.create(s)
				tt.steps = tt.steps[1:]
			}
			go func() { ended <- s.run() }()
			var created time.Time
			for _, step := range tt.steps {
				seen := strings.Count(s.log.String(), step.after)
				testkit.Eventually(t, "the log asks for the "+step.what,
					func() bool { return strings.Count(s.log.String(), step.after) > seen })
				step.create(s)
				created = time.Now()
			}
			if err := <-ended; err != nil {
				t.Fatalf("%v\n%s", err, s.log)
			}
			t.Logf("ready %s after the last object appeared", time.Since(created).Round(time.Millisecond))
			s.service("web-" + s.taskID)
			if tokens := s.tokens(); len(tokens) != 1 {
				t.Errorf("tokens = %v, want one", tokens)
			}
			s.file(workload.FileBootstrap)
		})
	}
}

type appears struct {
	what, after string
	create      func(*fixture)
}

func (s *fixture) method() string { return s.options.Config.ConsulLogin.Method }

func (s *fixture) createMethod() {
	s.must(authMethod(s.admin(), s.method(), "consul-ecs"))
}

func (s *fixture) createRole() {
	_, _, err := s.admin().ACL().RoleCreate(&api.ACLRole{Name: s.method()}, nil)
	s.must(err)
}

func (s *fixture) createRule() {
	_, _, err := s.admin().ACL().BindingRuleCreate(
		&api.ACLBindingRule{AuthMethod: s.method(), BindType: "role", BindName: s.method()}, nil)
	s.must(err)
}

func (s *fixture) attachPolicy() {
	c := s.admin()
	p, _, err := c.ACL().PolicyCreate(
		&api.ACLPolicy{Name: s.method(),
			Rules: `service_prefix "" { policy = "write" } node_prefix "" { policy = "read" }`}, nil)
	s.must(err)
	role, _, err := c.ACL().RoleReadByName(s.method(), nil)
	s.must(err)
	role.Policies = []*api.ACLLink{{ID: p.ID}}
	_, _, err = c.ACL().RoleUpdate(role, nil)
	s.must(err)
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err, consulutil.Reason(err))
	}
}
