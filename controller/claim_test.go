package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/awsutil"
)

const clusterARN = "arn:aws:ecs:us-east-1:123456789012:cluster/shop"

func shop(t testing.TB) awsutil.Cluster {
	t.Helper()
	c, err := awsutil.ParseCluster(clusterARN)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func agent() Leftovers {
	return Leftovers{Methods: []string{"iam-ecs-client-token", "iam-ecs-service-token"}}
}

func TestTokenClaims(t *testing.T) {
	t.Parallel()
	const uuid = "11111111-1111-1111-1111-111111111111"
	login := func(task, cluster string) string {
		return `token created via login: {"consul.hashicorp.com/cluster":"` + cluster +
			`","consul.hashicorp.com/task-id":"` + task + `"}`
	}
	tests := map[string]struct {
		method, description string
		task                string // empty if it is no task's
		sure                bool
	}{
		"a login's":       {"iam-ecs-service-token", login(task1, clusterARN), task1, true},
		"the client's":    {"iam-ecs-client-token", login(task1, clusterARN), task1, true},
		"an old task's":   {"iam-ecs-service-token", login(uuid, clusterARN), uuid, true},
		"by name":         {"iam-ecs-service-token", login(task1, "shop"), task1, false},
		"another name":    {"iam-ecs-service-token", login(task1, "shop2"), "", false},
		"another cluster": {"iam-ecs-service-token", login(task1, clusterARN+"2"), "", false},
		"another account": {"iam-ecs-service-token", login(task1, strings.Replace(clusterARN, "123", "124", 1)), "",
			false},
		"another method":       {"kubernetes", login(task1, clusterARN), "", false},
		"no login at all":      {"", login(task1, clusterARN), "", false},
		"an operator's text":   {"iam-ecs-service-token", "keep this one", "", false},
		"no meta":              {"iam-ecs-service-token", "token created via login", "", false},
		"another prefix":       {"iam-ecs-service-token", "x" + login(task1, clusterARN), "", false},
		"meta that is cut off": {"iam-ecs-service-token", strings.TrimSuffix(login(task1, clusterARN), "}"), "", false},
		"meta and more":        {"iam-ecs-service-token", login(task1, clusterARN) + "{}", "", false},
		"meta of a list":       {"iam-ecs-service-token", "token created via login: []", "", false},
		"a number": {"iam-ecs-service-token", `token created via login: {"consul.hashicorp.com/task-id":1}`,
			"", false},
		"no task": {"iam-ecs-service-token",
			`token created via login: {"consul.hashicorp.com/cluster":"` + clusterARN + `"}`, "", false},
		"an empty task": {"iam-ecs-service-token", login("", clusterARN), "", false},
		"no cluster": {"iam-ecs-service-token",
			`token created via login: {"consul.hashicorp.com/task-id":"` + task1 + `"}`, "", false},
		"an empty cluster":     {"iam-ecs-service-token", login(task1, ""), "", false},
		"a task of ten digits": {"iam-ecs-service-token", login("1111111111", clusterARN), "", false},
		"a task's ARN":         {"iam-ecs-service-token", login(clusterARN+"/"+task1, clusterARN), "", false},
		"a task in upper case": {"iam-ecs-service-token", login(strings.Repeat("A", 32), clusterARN), "", false},
		"an upper-case method": {"IAM-ECS-Service-Token", login(task1, clusterARN), task1, true},
		"keys in upper case": {
			"iam-ecs-service-token",
			`token created via login: {"CONSUL.HASHICORP.COM/CLUSTER":"` + clusterARN +
				`","Consul.HashiCorp.com/task-id":"` + task1 + `"}`, "", false,
		},
		"the user's meta beside ours": {
			"iam-ecs-service-token",
			strings.Replace(login(task1, clusterARN), "{", `{"task-id":"`+task2+`","team":"blue",`, 1), task1, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := agent().token(
				tokenEntry{AccessorID: "a", Description: tc.description, AuthMethod: tc.method, CreateTime: noon},
				shop(t))
			want := Token{}
			if tc.task != "" {
				want = Token{Accessor: "a", Method: strings.ToLower(tc.method), Task: tc.task, Created: noon,
					Sure: tc.sure}
			}
			elsewhere := slices.Contains(
				[]string{"another name", "another cluster", "another account", "another method", "no login at all"},
				name)
			if foreign := agent().foreign(tokenEntry{Description: tc.description, AuthMethod: tc.method},
				shop(t)); tc.task == "" && foreign == elsewhere {
				t.Errorf("foreign %v", foreign)
			}
			if got != want || ok != (tc.task != "") {
				t.Errorf("token = %+v, %v, want %+v", got, ok, want)
			}
		})
	}
}

func TestServiceClaims(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:ecs:us-east-1:123456789012:task/shop/" + task1
	tests := map[string]struct {
		id, source, arn string
		task            string
		sure            bool
	}{
		"a service": {"web-" + task1, "consul-ecs", arn, task1, true},
		"its proxy": {"web-" + task1 + "-sidecar-proxy", "consul-ecs", arn, task1, true},
		"of an old ARN": {"web-" + task1, "consul-ecs", strings.Replace(arn, "shop/", "", 1), task1,
			false},
		"another source": {"web-" + task1, "nomad", arn, "", false},
		"no source":      {"web-" + task1, "", arn, "", false},
		"no task":        {"web-" + task1, "consul-ecs", "", "", false},
		"another cluster": {"web-" + task1, "consul-ecs", strings.Replace(arn, "shop", "shop2", 1), "",
			false},
		"another account": {"web-" + task1, "consul-ecs", strings.Replace(arn, "123", "124", 1), "", false},
		"another region": {"web-" + task1, "consul-ecs", strings.Replace(arn, "us-east-1", "us-east-2", 1), "",
			false},
		"another AWS": {"web-" + task1, "consul-ecs", strings.Replace(arn, "aws", "aws-cn", 1), "",
			false},
		"not a task": {"web-" + task1, "consul-ecs", strings.Replace(arn, "task/", "service/", 1), "",
			false},
		"something else's ID":         {"web", "consul-ecs", arn, "", false},
		"of another task by its ID":   {"web-" + task2, "consul-ecs", arn, "", false},
		"the task's ID alone":         {task1, "consul-ecs", arn, "", false},
		"no task's ID in the ARN":     {"web-x", "consul-ecs", strings.Replace(arn, task1, "x", 1), "", false},
		"more than a service's ID":    {"web-" + task1 + "-2", "consul-ecs", arn, "", false},
		"an ARN with too many parts":  {"web-" + task1, "consul-ecs", arn + "/" + task1, "", false},
		"an ARN without its task":     {"web-", "consul-ecs", strings.TrimSuffix(arn, task1), "", false},
		"an ARN of the old form only": {"web-", "consul-ecs", "arn:aws:ecs:us-east-1:123456789012:task/", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := map[string]string{"source": tc.source, "task-arn": tc.arn, "task-id": task2}
			got, ok := agent().service(serviceEntry{Node: "n", ServiceID: tc.id, ServiceMeta: meta}, shop(t))
			want := Service{}
			if tc.task != "" {
				want = Service{Node: "n", ID: tc.id, Task: tc.task, Sure: tc.sure}
			}
			elsewhere := slices.Contains(
				[]string{"another cluster", "another account", "another region", "another AWS"}, name)
			if foreign := (serviceEntry{ServiceMeta: meta}).foreign(shop(t)); tc.task == "" && foreign == elsewhere {
				t.Errorf("foreign %v", foreign)
			}
			if got != want || ok != (tc.task != "") {
				t.Errorf("service = %+v, %v, want %+v", got, ok, want)
			}
		})
	}
}

// FuzzTokenClaims: whatever the description, a token is a task's only with all
// of the proof.
func FuzzTokenClaims(f *testing.F) {
	f.Add("iam-ecs-service-token",
		`token created via login: {"consul.hashicorp.com/cluster":"`+
			clusterARN+`","consul.hashicorp.com/task-id":"`+task1+`"}`)
	f.Add("iam-ecs-service-token", "token created via login: {")
	f.Add("iam-ecs-servicE-token",
		`token created via login: {"consul.hashicorp.com/cluster":"`+
			clusterARN+`","consul.hashicorp.com/task-id":"`+task1+`"}`)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, method, description string) {
		token, ok := agent().token(
			tokenEntry{AccessorID: "a", Description: description, AuthMethod: method, CreateTime: time.Now()}, shop(t))
		if !ok {
			return
		}
		var meta map[string]any
		_, text, _ := strings.Cut(description, ": ")
		if err := json.Unmarshal([]byte(text), &meta); err != nil && strings.Contains(description, ": ") {
			t.Fatalf("claimed by %q: %v", description, err)
		}
		if !awsutil.IsTaskID(token.Task) {
			t.Fatalf("claimed for the task %q by %q", token.Task, description)
		}
		if method == "" || !aclrules.SameName(token.Method, method) { // Consul folds names
			t.Fatalf("claimed for the method %q, want %q, not empty", token.Method, method)
		}
		if !strings.Contains(description, "shop") {
			t.Fatalf("claimed by %q, want one with shop", description)
		}
	})
}
