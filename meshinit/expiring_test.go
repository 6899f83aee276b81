package meshinit_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// TestExpiringTokenIsPresentedByARelay, since Envoy cannot replace the one in its bootstrap.
func TestExpiringTokenIsPresentedByARelay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grpc    string
		relayed bool
	}{
		"at a port":        {"127.0.0.1:8599", true},
		"at a Unix socket": {"unix:///tmp/grpc.sock", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method := "expiring-" + strings.ReplaceAll(name, " ", "-")
			doc := strings.Replace(loginDoc, `"method":"`+trusting+`"`, `"method":"`+method+`"`, 1)
			s := newFixture(t, secured, doc)
			s.createMethod()
			m, _, err := s.admin().ACL().AuthMethodRead(method, nil)
			s.must(err)
			m.MaxTokenTTL = time.Hour
			_, _, err = s.admin().ACL().AuthMethodUpdate(m, nil)
			s.must(err)
			s.createRole()
			s.createRule()
			s.attachPolicy()
			s.options.Proxy = meshinit.AgentProxy{Dir: s.dir, GRPC: meshinit.GRPC{Address: tt.grpc}}
			s.mustRun()
			text := string(s.file(workload.FileBootstrap))
			secret := string(s.file(workload.FileServiceToken))
			if holds := strings.Contains(text, secret); holds == tt.relayed {
				t.Errorf("the bootstrap holds the token: %v", holds)
			}
			token, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: secret})
			s.must(err)
			if renewed := consulutil.LoginMeta(
				token.Description)[config.LoginMetaRenewed]; renewed != strconv.FormatBool(tt.relayed) {
				t.Errorf("the login declares that its token is replaced: %s", renewed)
			}
			if !tt.relayed {
				return
			}
			if strings.Contains(text, "x-consul-token") {
				t.Error("the bootstrap has a token's header")
			}
			socket := "@consul-ecs-xds-" + s.taskID
			if !strings.Contains(text, `"path": "`+socket+`"`) {
				t.Errorf("the bootstrap does not lead to %s", socket)
			}
			relay, err := bootstrap.ParseRelay(s.file(workload.FileRelay))
			s.must(err)
			want := bootstrap.Relay{
				TokenFile: s.dir + "/service-token",
				Agent:     &bootstrap.RelayAgent{Socket: socket, Address: tt.grpc},
			}
			if d := cmp.Diff(want, relay); d != "" {
				t.Errorf("relay (-want +got):\n%s", d)
			}
			s.wantMode(workload.FileBootstrap, 0o444)
		})
	}
}
