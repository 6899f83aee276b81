package taskrole

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/admission/usage"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// oneRole is an IAM with one role, which may read itself.
type oneRole struct {
	role awsutil.Role
	err  error
}

func (o oneRole) Role(context.Context, string) (awsutil.Role, error) { return o.role, o.err }

func (o oneRole) Allowed(context.Context, string, string, string) (bool, error) { return true, o.err }

func result(t *testing.T, doc string, used map[string]*usage.Summary) *admission.Result {
	t.Helper()
	parsed, err := taskdef.ParseTemplate([]byte(doc), "")
	if err != nil {
		t.Fatal(err)
	}
	return &admission.Result{After: parsed, Login: true, Usages: used}
}

const named = `{"TaskRoleArn": "arn:aws:iam::123456789012:role/app", "ContainerDefinitions": []}`

func TestRoleOfOneTask(t *testing.T) {
	t.Parallel()
	web := &usage.Summary{Services: []string{"web"}, Kinds: []string{"connect-proxy:web"}}
	gateway := &usage.Summary{Kinds: []string{"connect-mesh:gw"}}
	for name, c := range map[string]struct {
		doc  string
		used map[string]*usage.Summary
		tags map[string]string
		want []string
	}{
		"service":                 {named, map[string]*usage.Summary{"": web}, map[string]string{workload.TagServiceName: "web"}, nil},
		"service of a namespace":  {named, map[string]*usage.Summary{"team": web}, map[string]string{workload.TagServiceName: "web", workload.TagNamespace: "team"}, nil},
		"another namespace":       {named, map[string]*usage.Summary{"team": web}, map[string]string{workload.TagServiceName: "web"}, []string{"ADM-IAM-TAG"}},
		"gateway":                 {named, map[string]*usage.Summary{"": gateway}, map[string]string{workload.TagGatewayKind: "mesh-gateway"}, nil},
		"gateway of another kind": {named, map[string]*usage.Summary{"": gateway}, map[string]string{workload.TagGatewayKind: "api-gateway"}, []string{"ADM-IAM-TAG"}},
		"upstream elsewhere":      {named, map[string]*usage.Summary{"other": {Upstreams: []string{"db"}}}, nil, nil},
		"computed role":           {`{"TaskRoleArn": {"Ref": "Role"}, "ContainerDefinitions": []}`, nil, nil, []string{"ADM-IAM-UNKNOWN"}},
		"no role":                 {`{"ContainerDefinitions": []}`, nil, nil, []string{"ADM-IAM-ROLE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := result(t, c.doc, c.used)
			iam := oneRole{role: awsutil.Role{Path: "/consul-ecs/", Tags: c.tags, Trusted: []string{"ecs-tasks.amazonaws.com"}}}
			err := Checker{IAM: iam, Path: "/consul-ecs/"}.Check(t.Context(), r)
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.Code)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("error %v, findings %v, want %v", err, r.Findings, c.want)
			}
		})
	}
}

func TestTaskWithoutLoginNeedsNoIAM(t *testing.T) {
	t.Parallel()
	r := result(t, named, nil)
	r.Login = false
	if err := (Checker{IAM: oneRole{err: errors.New("asked")}}).Check(t.Context(), r); err != nil || len(r.Findings) > 0 {
		t.Errorf("error %v, findings %v", err, r.Findings)
	}
}

// The table of the page is made of the rules. Where the page lacks one, the test prints it.
func TestPageHasTheTableOfTheTaskRole(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| Code | Severity | About the task role | What to do |\n|---|---|---|---|\n")
	for _, c := range Codes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, c.Text, c.Fix)
	}
	page, err := os.ReadFile("../../docs/ADMISSION.md")
	if err != nil || !strings.Contains(string(page), table.String()) {
		t.Errorf("error %v; docs/ADMISSION.md does not have the table:\n\n%s", err, table.String())
	}
}
