package lease

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/meshtask/consul-ecs/consulutil"
)

// keys is the KV prefix below which controllers keep what they share.
const keys = "consul-ecs/"

// The ACL rules that the lock's requests need.
const (
	keyRule     = `key_prefix "` + keys + `" { policy = "write" }`
	sessionRule = `session_prefix "" { policy = "write" }`
)

// explain says what to do about a refusal of Consul.
func explain(err error, rule string) error {
	switch {
	case consulutil.UnknownToken(err):
		return fmt.Errorf("%w: Consul does not know the token: correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE", err)
	case strings.Contains(consulutil.Reason(err), "Consul Enterprise feature"):
		return fmt.Errorf("%w: admin partitions need Consul Enterprise; leave out -partitions-enabled", err)
	case consulutil.Status(err) == http.StatusForbidden:
		return fmt.Errorf("%w: give the token of CONSUL_HTTP_TOKEN a policy with: %s", err, rule)
	}
	return err
}
