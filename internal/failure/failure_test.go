package failure_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestIDsAreDistinctAndComplete(t *testing.T) {
	t.Parallel()
	seen := map[failure.ID]bool{}
	for _, f := range failure.All() {
		if seen[f.ID] {
			t.Errorf("%s is there twice", f.ID)
		}
		seen[f.ID] = true
		for _, text := range []string{f.Title, f.Why, f.Fix} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", f.ID, text)
			}
		}
		if !strings.HasPrefix(string(f.ID), "CE-") || strings.ToUpper(string(f.ID)) != string(f.ID) {
			t.Errorf("%s: want CE- and capital letters", f.ID)
		}
	}
}

// TestOf checks log lines as the program, Consul and AWS write them.
func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want failure.ID
	}{
		{"", ""},
		{"task is ready for the mesh", ""},
		{`Unexpected response code: 403 (rpc error making call: ACL not found: auth method "iam" not found)`,
			"CE-LOGIN-METHOD"},
		{`Unexpected response code: 403 (ACL not found)`, "CE-TOKEN-UNKNOWN"},
		{`Unexpected response code: 500 (rpc error making call: invalid bind name: "")`, "CE-LOGIN-TAG"},
		{`Permission denied: token with AccessorID 'primary-dc-down' lacks permission 'service:write' on "web"`,
			"CE-AGENT-JOIN"},
		{`Put "https://consul/v1/acl/login": server 10.0.0.1:8501: tls: failed to verify certificate: x509: ` +
			`certificate has expired or is not yet valid: current time 2026-11-28T10:00:00Z is after ` +
			`2026-01-01T00:00:00Z`, "CE-TLS-EXPIRED"},
		{`x509: certificate signed by unknown authority (possibly because of "x509: certificate has expired or ` +
			`is not yet valid: x" while trying to verify candidate authority certificate "Consul")`, "CE-TLS-CA"},
		{"received error code 403: <Error>; <Code>SignatureDoesNotMatch</Code>; <Message>Signature expired: 1 is " +
			"now earlier than 2", "CE-AWS-CLOCK"},
		{"SignatureDoesNotMatch: Credential should be scoped to a valid region", "CE-AWS-SIGNATURE"},
		{"User: arn:aws:sts::1:assumed-role/r/t is not authorized to perform: iam:GetRole on resource: r",
			"CE-AWS-GETROLE"},
		{`get AWS credentials (does the task have a task role?): failed to refresh cached credentials, failed to ` +
			`load credentials, CredentialsUninitialized: CredentialsV2Request: Credentials uninitialized for ID`,
			"CE-AWS-CREDENTIALS-AWAY"},
		{"Unexpected response code: 500 (error making request: POST http://10.42.0.1/ giving up after 1 attempt(s))",
			"CE-LOGIN-AWS-AWAY"},
		{"read task metadata failed, retrying\nread task metadata: GET http://169.254.170.2/v4/x/task: status 500",
			"CE-METADATA-AWAY"},
		{"connect Envoy with a Consul server failed, retrying\nconnect to Consul server 10.42.0.254:8599: dial tcp " +
			"10.42.0.254:8599: connect: connection refused", "CE-CONSUL-GRPC"},
		{"get AWS credentials: the task has no task role, and the instance gives none", "CE-AWS-CREDENTIALS"},
		{`Get "http://127.0.0.1:8500/v1/status/leader": dial tcp 127.0.0.1:8500: connect: connection refused`,
			"CE-CONSUL-REFUSED"},
		{`Get "http://10.0.0.9:5000/v2/": dial tcp 10.0.0.9:5000: connect: connection refused`, ""},
		{"mesh-init failed: something [CE-AWS-REGION]: no binding rule of the auth method matches", "CE-AWS-REGION"},
		{"mesh-init failed: something [CE-NO-SUCH]", ""},
	} {
		testkit.Equal(t, c.text, failure.Of(c.text), c.want)
	}
}

func TestMarkStandsAtTheEndOnce(t *testing.T) {
	t.Parallel()
	const text = "no AWS region: set consulLogin.region or AWS_REGION"
	once := failure.Mark(text)
	testkit.Equal(t, "marked", once, text+" [CE-AWS-REGION]")
	testkit.Equal(t, "marked twice", failure.Mark(once), once)
	testkit.Equal(t, "without an ID", failure.Mark("fine"), "fine")
}

// TestPageHasEachFailure compares the part of the page that is made from the table.
func TestPageHasEachFailure(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(begin)
	for _, f := range slices.SortedFunc(slices.Values(failure.All()), func(a, b failure.Failure) int {
		return cmp.Compare(a.ID, b.ID)
	}) {
		fmt.Fprintf(&b, "\n### %s\n\n%s %s\n**Fix:** %s\n", f.ID, f.Title, f.Why, f.Fix)
		if f.Show != "" {
			fmt.Fprintf(&b, "**Show:** `%s`\n", f.Show)
		}
	}
	path := filepath.Join(testkit.Root(), "docs", "TROUBLESHOOTING.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(page), begin)
	if !found {
		t.Fatalf("%s has no line %q", path, begin)
	}
	testkit.Golden(t, "../../../docs/TROUBLESHOOTING.md", []byte(head+b.String()))
}

const begin = "## Failures by ID\n"
