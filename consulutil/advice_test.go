package consulutil

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	denied := api.StatusError{Code: 403, Body: "Permission denied"}
	unknown := api.StatusError{Code: 403, Body: "ACL not found"}
	of := func(object string, err error, rule string) error {
		return fmt.Errorf("read %s: %w", object, Needs(err, rule))
	}
	const acl, key = `acl = "write"`, `key_prefix "" { policy = "write" }`
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one": {of("a", denied, acl),
			`read a: Unexpected response code: 403 (Permission denied): give the token of CONSUL_HTTP_TOKEN a policy ` +
				`with: acl = "write"`},
		"permanent": {&retry.PermanentError{Err: of("a", denied, acl)},
			`read a: Unexpected response code: 403 (Permission denied): give the token of CONSUL_HTTP_TOKEN a policy ` +
				`with: acl = "write"`},
		"several, two of one rule": {errors.Join(of("a", denied, acl),
			errors.Join(of("b", denied, key), of("c", denied, acl))),
			"read a: Unexpected response code: 403 (Permission denied)\nread b: Unexpected response code: 403 " +
				"(Permission denied)\nread c: Unexpected response code: 403 (Permission denied)\n" +
				`give the token of CONSUL_HTTP_TOKEN a policy with: acl = "write" key_prefix "" { policy = "write" }`},
		"an unknown token": {errors.Join(of("a", unknown, acl), of("b", unknown, key)),
			"read a: Unexpected response code: 403 (ACL not found)\nread b: Unexpected response code: 403 (ACL not " +
				"found)\n" +
				"Consul does not know the token: correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE"},
		"no token": {of("a",
			api.StatusError{Code: 403, Body: "Permission denied: anonymous token lacks permission 'key:read'"}, key),
			"read a: Unexpected response code: 403 (Permission denied: anonymous token lacks permission 'key:read'): " +
				noToken + "; " + Allow(key)},
		"without ACLs": {of("a", api.StatusError{Code: 401, Body: "ACL support disabled"}, acl),
			"read a: Unexpected response code: 401 (ACL support disabled): enable ACLs in Consul; without them there " +
				"is nothing to set up"},
		"a short session": {of("a",
			api.StatusError{Code: 500, Body: "Invalid Session TTL '10000000000', must be between [30s=24h0m0s]"}, key),
			"read a: Unexpected response code: 500 (Invalid Session TTL '10000000000', must be between " +
				"[30s=24h0m0s]): set session_ttl_min of the Consul servers to 10s, its default"},
		"a partition": {of("a",
			api.StatusError{Code: 400,
				Body: `Invalid query parameter: "partition" - Partitions are a Consul Enterprise feature`}, acl),
			`read a: Unexpected response code: 400 (Invalid query parameter: "partition" - Partitions are a Consul ` +
				`Enterprise feature): ` + WithoutPartitions},
		"a fault": {of("a", api.StatusError{Code: 500, Body: "No cluster leader"}, acl),
			"read a: Unexpected response code: 500 (No cluster leader)"},
		"a fault, too": {errors.Join(of("a", denied, acl), errors.New("b")),
			"read a: Unexpected response code: 403 (Permission denied)\nb\n" + Allow(acl)},
		"not noted": {denied, "Unexpected response code: 403 (Permission denied)"},
	} {
		got := Advise(c.err)
		if got.Error() != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		if Status(got) != Status(c.err) || Classify(got) != Classify(c.err) {
			t.Errorf("%s: status %d, class %v", name, Status(got), Classify(got))
		}
	}
	if Advise(Needs(nil, acl)) != nil {
		t.Error("advice about nothing")
	}
}
