package subcommand

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// iamRole is a role as a fixture of IAM has it, and families are those of ECS that use it.
type iamRole struct {
	path, tags, trust, decision string
	families                    []string
}

// answerECS answers for families that all have the role; AccessDenied without any.
func answerECS(w http.ResponseWriter, operation string, role iamRole) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	switch {
	case role.families == nil:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type": "AccessDeniedException", "message": "not authorized"}`)
	case operation == "ListTaskDefinitionFamilies":
		_ = json.NewEncoder(w).Encode(map[string][]string{"families": role.families})
	default:
		fmt.Fprintf(w, `{"taskDefinition": {"taskRoleArn": "arn:aws:iam::123456789012:role%sapp"}}`, role.path)
	}
}

// startIAM answers GetRole and SimulatePrincipalPolicy, or nothing but the status, and ECS.
func startIAM(t *testing.T, status int, role iamRole) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, operation, is := strings.Cut(r.Header.Get("X-Amz-Target"), "."); is {
			answerECS(w, operation, role)
			return
		}
		w.WriteHeader(status)
		switch {
		case status == http.StatusNotFound:
			fmt.Fprint(w,
				`<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>no such role</Message></Error></ErrorResponse>`)
		case status != http.StatusOK:
			fmt.Fprint(w,
				`<ErrorResponse><Error><Code>AccessDenied</Code><Message>not allowed</Message></Error></ErrorResponse>`)
		case !strings.Contains(r.Header.Get("Authorization"), "/us-east-1/iam/aws4_request"):
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		case r.FormValue("Action") == "GetRole" && r.FormValue("RoleName") == "app":
			fmt.Fprintf(w,
				`<GetRoleResponse><GetRoleResult><Role><Path>%s</Path><RoleId>AROAEXAMPLE</RoleId><Arn>arn:aws:iam::123456789012:role%sapp</Arn>
				<AssumeRolePolicyDocument>%s</AssumeRolePolicyDocument><Tags>%s</Tags></Role></GetRoleResult></GetRoleResponse>`,
				role.path, role.path, url.PathEscape(role.trust), role.tags)
		case r.FormValue("Action") == "SimulatePrincipalPolicy" &&
			r.FormValue("ActionNames.member.1") == "iam:GetRole" &&
			r.FormValue("ResourceArns.member.1") == r.FormValue("PolicySourceArn"):
			fmt.Fprintf(w,
				`<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults><member><EvalDecision>%s</EvalDecision></member></EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>`, role.decision)
		default:
			t.Errorf("unexpected call %v", r.Form)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_IAM": server.URL, "AWS_ENDPOINT_URL_ECS": server.URL, "AWS_REGION": "eu-west-1",
		"AWS_ACCESS_KEY_ID":     "AKIAEXAMPLE",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
}

const ecsTrust = `{"Statement": [{"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`

func serviceTag(name string) string {
	return "<member><Key>consul.hashicorp.com.service-name</Key><Value>" + name + "</Value></member>"
}

// loginTask returns a task with a role, and the mesh file of tasks that log in.
func loginTask(t *testing.T) (doc, mesh string) {
	t.Helper()
	mesh = filepath.Join(t.TempDir(), "mesh.json")
	if err := os.WriteFile(mesh,
		[]byte(`{"consulServers": {"hosts": "10.0.0.4"}, "consulLogin": {"enabled": true}, "proxy": {"mode": "direct"}, "admission": {"images": {"consulECS": "example/consul-ecs:1"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(plainTask(withEntryPoint), `"cpu"`,
		`"taskRoleArn": "arn:aws:iam::123456789012:role/consul-ecs/app", "cpu"`, 1), mesh
}

func TestAdmitChecksTheTaskRole(t *testing.T) {
	good := iamRole{"/consul-ecs/", serviceTag("app"), ecsTrust, "allowed", []string{"app"}}
	for name, c := range map[string]struct {
		change func(*iamRole)
		code   int
		want   []string
	}{
		"right":          {func(*iamRole) {}, 0, nil},
		"below the path": {func(r *iamRole) { r.path = "/consul-ecs/team/" }, 0, nil},
		"two families": {func(r *iamRole) { r.families = []string{"api", "app", "worker"} }, 0,
			[]string{"warning ADM-IAM-SHARED $.taskRoleArn: the task role " +
				"arn:aws:iam::123456789012:role/consul-ecs/app is also that of api, worker: "}},
		"ECS refuses": {func(r *iamRole) { r.families = nil }, 0, []string{"info ADM-IAM-SHARED-UNKNOWN",
			"not authorized"}},
		"other service": {func(r *iamRole) { r.tags = serviceTag("api") }, 2,
			[]string{`ADM-IAM-TAG $.taskRoleArn: the task role arn:aws:iam::123456789012:role/consul-ecs/app has "api" as its tag consul.hashicorp.com.service-name, but the service needs app`}},
		"no tag": {func(r *iamRole) { r.tags = "" }, 2, []string{`ADM-IAM-TAG`, `has "" as its tag`}},
		"other path": {func(r *iamRole) { r.path = "/" }, 2,
			[]string{"ADM-IAM-ROLE", "its path is /, but the auth method trusts roles below /consul-ecs/"}},
		"may not read": {func(r *iamRole) { r.decision = "implicitDeny" }, 2,
			[]string{"ADM-IAM-ROLE", "allow it iam:GetRole on itself"}},
		"anyone": {func(r *iamRole) { r.trust = `{"Statement": {"Effect": "Allow", "Principal": "*"}}` }, 0,
			[]string{"ADM-IAM-TRUST", "may be assumed by *,"}},
		"all but one": {func(r *iamRole) { r.trust = `{"Statement": {"Effect": "Allow", "NotPrincipal": {"AWS": "x"}}}` }, 0, []string{"ADM-IAM-TRUST", "may be assumed by *,"}},
		"another account": {func(r *iamRole) {
			r.trust = strings.Replace(ecsTrust, `"Service"`, `"AWS": ["999988887777"], "Service"`, 1)
		}, 0, []string{"ADM-IAM-TRUST", "may be assumed by 999988887777,"}},
		"not ECS": {func(r *iamRole) { r.trust = strings.ReplaceAll(ecsTrust, "ecs-tasks", "ec2") }, 2,
			[]string{"ADM-IAM-TRUST", "ADM-IAM-ROLE", "does not name ecs-tasks.amazonaws.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			role := good
			c.change(&role)
			startIAM(t, http.StatusOK, role)
			doc, mesh := loginTask(t)
			code, _, stderr := callAdmit(doc, "-config", mesh, "-check-iam", "-")
			if code != c.code || len(c.want) == 0 && strings.Contains(stderr, "ADM-IAM") {
				t.Errorf("exit %d, want %d, stderr %s", code, c.code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in %s", want, stderr)
				}
			}
		})
	}
}

func TestAdmitFailsWithIAM(t *testing.T) {
	startIAM(t, http.StatusForbidden, iamRole{})
	doc, mesh := loginTask(t)
	code, stdout, stderr := callAdmit(doc, "-config", mesh, "-check-iam", "-")
	if code != 4 || stdout != "" || !strings.Contains(stderr,
		"read the role arn:aws:iam::123456789012:role/consul-ecs/app: IAM answered 403") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestAdmitReportsMissingTaskRole(t *testing.T) {
	startIAM(t, http.StatusNotFound, iamRole{})
	doc, mesh := loginTask(t)
	without := plainTask(withEntryPoint)
	for want, doc := range map[string]string{"(absent) cannot log in": without, "it does not exist": doc} {
		if code, _, stderr := callAdmit(doc, "-config", mesh, "-check-iam", "-"); code != 2 ||
			!strings.Contains(stderr, want) {
			t.Errorf("exit %d, want %q in %s", code, want, stderr)
		}
	}
}
