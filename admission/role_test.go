package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// oneRole is an IAM with one role, which may read itself.
type oneRole struct {
	role awsutil.Role
	err  error
}

func (o oneRole) Role(context.Context, string) (awsutil.Role, error) { return o.role, o.err }

func (o oneRole) Allowed(context.Context, string, string, string) (bool, error) { return true, o.err }

func resultWithRole(t *testing.T, doc string, used map[string]*UseSummary) *Result {
	t.Helper()
	resource := ""
	if strings.Contains(doc, `"Resources"`) {
		resource = "A"
	}
	parsed, err := taskdef.ParseTemplate([]byte(doc), resource)
	if err != nil {
		t.Fatal(err)
	}
	return &Result{After: parsed, Login: &config.ConsulLogin{Method: "iam"}, Format: formatTemplate, Usages: used}
}

// oneFamily answers as an ECS in which no other family has the role.
func oneFamily(context.Context, string) ([]string, error) { return []string{"app"}, nil }

const (
	namedRole = `{"TaskRoleArn": "arn:aws:iam::123456789012:role/app", "ContainerDefinitions": []}`
	ownFamily = `{"Family": "app", "TaskRoleArn": "arn:aws:iam::123456789012:role/app", "ContainerDefinitions": []}`
)

func TestRoleOfOneTask(t *testing.T) {
	t.Parallel()
	web := &UseSummary{Services: []string{"web"}, Kinds: []string{"connect-proxy:web"}}
	gateway := &UseSummary{Kinds: []string{"connect-mesh:gw"}}
	for name, c := range map[string]struct {
		doc  string
		used map[string]*UseSummary
		tags map[string]string
		want []string
	}{
		"service": {ownFamily, map[string]*UseSummary{"": web},
			map[string]string{config.TagServiceName: "web"}, nil},
		"service of a namespace": {ownFamily, map[string]*UseSummary{"team": web},
			map[string]string{config.TagServiceName: "web", config.TagNamespace: "team"}, nil},
		"another namespace": {ownFamily, map[string]*UseSummary{"team": web},
			map[string]string{config.TagServiceName: "web"}, []string{"ADM-IAM-TAG"}},
		"gateway": {ownFamily, map[string]*UseSummary{"": gateway},
			map[string]string{config.TagGatewayKind: "mesh-gateway"}, nil},
		"gateway of another kind": {ownFamily, map[string]*UseSummary{"": gateway},
			map[string]string{config.TagGatewayKind: "api-gateway"}, []string{"ADM-IAM-TAG"}},
		"upstream elsewhere": {ownFamily, map[string]*UseSummary{"other": {Upstreams: []string{"db"}}}, nil, nil},
		"computed role": {`{"TaskRoleArn": {"Ref": "Role"}, "ContainerDefinitions": []}`, nil, nil,
			[]string{"ADM-IAM-UNKNOWN"}},
		"two tasks, one role": {
			`{"Resources": {"A": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"TaskRoleArn": {"Ref": "Role"}, "ContainerDefinitions": []}},
				"B": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"TaskRoleArn": {"Ref": "Role"}}}, "C": {"Type": "AWS::ECS::Service", "Properties": {"TaskRoleArn": {"Ref": "Role"}}}}}`,
			nil, nil, []string{"ADM-IAM-SHARED", "ADM-IAM-UNKNOWN"},
		},
		"no role": {`{"ContainerDefinitions": []}`, nil, nil, nil}, // Admit has reported it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resultWithRole(t, c.doc, c.used)
			iam := oneRole{role: awsutil.Role{Path: "/consul-ecs/", Tags: c.tags,
				Trusted: []string{"ecs-tasks.amazonaws.com"}}}
			err := RoleChecker{IAM: iam, Path: "/consul-ecs/", Families: oneFamily}.Check(t.Context(), r)
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

func TestNameOfARoleIsNotCalledComputed(t *testing.T) {
	t.Parallel()
	r := resultWithRole(t, `{"TaskRoleArn": "consul-ecs/web", "ContainerDefinitions": []}`, nil)
	err := RoleChecker{IAM: oneRole{err: errors.New("asked")}}.Check(t.Context(), r)
	const want = "the task role consul-ecs/web is a name and not an ARN: it was not checked"
	testkit.ErrorContains(t, err, "")
	if len(r.Findings) != 1 {
		t.Fatalf("findings %v, want one", r.Findings)
	}
	testkit.Equal(t, "message", r.Findings[0].Message, want)
	testkit.Equal(t, "fix", r.Findings[0].Fix, "write the ARN as taskRoleArn")
}

// noFamilies answers as an ECS that fails when it is asked.
func noFamilies(context.Context, string) ([]string, error) { return nil, errors.New("asked") }

// The family that is not known yet may be among those that ECS names.
func TestOtherFamiliesAreUnknownToADefinitionWithoutFamily(t *testing.T) {
	t.Parallel()
	r := resultWithRole(t, namedRole, nil)
	iam := oneRole{role: awsutil.Role{ARN: "app", Path: "/", Trusted: []string{"ecs-tasks.amazonaws.com"}}}
	err := RoleChecker{IAM: iam, Path: "/", Families: noFamilies}.Check(t.Context(), r)
	const want = "cannot determine which other families have the task role app: the family of this definition is " +
		"known at deployment only"
	wanted := []Finding{{codeRoleSharedUnknown, Info, "$.TaskRoleArn", want, "set Family"}}
	if diff := cmp.Diff([]any{nil, wanted}, []any{err, r.Findings}); diff != "" {
		t.Errorf("error and findings (-want +got):\n%s", diff)
	}
}

func TestTaskWithoutLoginNeedsNoIAM(t *testing.T) {
	t.Parallel()
	r := resultWithRole(t, namedRole, nil)
	r.Login = nil
	if err := (RoleChecker{IAM: oneRole{err: errors.New("asked")}}).Check(t.Context(), r); err != nil ||
		len(r.Findings) > 0 {
		t.Errorf("error %v, findings %v", err, r.Findings)
	}
}

// The table of the page is made of the rules. Where the page lacks one, the test prints it.
func TestPageHasTheTableOfTheTaskRole(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| Code | Severity | About the task role | What to do |\n|---|---|---|---|\n")
	for _, c := range roleCodes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, c.Text, c.Fix)
	}
	page, err := os.ReadFile("../docs/ADMISSION.md")
	if err != nil || !strings.Contains(string(page), table.String()) {
		t.Errorf("error %v; docs/ADMISSION.md does not have the table:\n\n%s", err, table.String())
	}
}
