package shapes_test

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

var account = shapes.Account{Region: "us-east-1", ID: "123456789012"}

const (
	prefix = "arn:aws:ecs:us-east-1:123456789012:"
	taskID = "0123456789abcdef0123456789abcdef"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	china := shapes.Account{Region: "cn-north-1", ID: "123456789012"}
	for got, want := range map[string]string{
		account.Cluster("c"):                                 prefix + "cluster/c",
		account.Task("c", taskID):                            prefix + "task/c/" + taskID,
		account.Container("c", taskID, "u"):                  prefix + "container/c/" + taskID + "/u",
		account.ContainerInstance("c", "i"):                  prefix + "container-instance/c/i",
		account.Service("c", "s"):                            prefix + "service/c/s",
		account.TaskDefinition("f", 3):                       prefix + "task-definition/f:3",
		china.Cluster("c"):                                   "arn:aws-cn:ecs:cn-north-1:123456789012:cluster/c",
		shapes.Account{Region: "us-gov-west-1"}.Cluster("c"): "arn:aws-us-gov:ecs:us-gov-west-1::cluster/c",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	cluster := func(text string) (string, error) { return account.ClusterName(text) }
	task := func(text string) (string, error) { return account.TaskID("mesh", text) }
	service := func(text string) (string, error) { return account.ServiceName("mesh", text) }
	resource := func(text string) (string, error) {
		r, err := account.Parse(text)
		return strings.Join([]string{r.Kind, r.Cluster, r.Name}, ","), err
	}
	for _, tt := range []struct {
		read       func(string) (string, error)
		text, want string
	}{
		{cluster, "", "default"},
		{cluster, "mesh", "mesh"},
		{cluster, prefix + "cluster/mesh", "mesh"},
		{cluster, prefix + "service/mesh/s", "Expected a cluster, got a service."},
		{cluster, prefix + "cluster/mesh/x", "Unexpected number of separators"},
		{cluster, "a/b", "Unexpected number of separators"},
		{cluster, "arn:aws:ecs", "Identifier is not an ARN."},
		{task, taskID, taskID},
		{task, prefix + "task/mesh/" + taskID, taskID},
		{task, prefix + "task/" + taskID, taskID}, // the old form
		{task, prefix + "task/other/" + taskID, "Identifier is for cluster other. Your cluster is mesh"},
		{task, "", "taskId length should be one of [32,36]"},
		{task, "mesh/" + taskID, "Unexpected number of separators"},
		{task, prefix + "cluster/mesh", "Expected a task, got a cluster."},
		{service, "web", "web"},
		{service, prefix + "service/mesh/web", "web"},
		{resource, prefix + "task-definition/web:3", "task-definition,,web:3"},
		{resource, prefix + "container-instance/mesh/i", "container-instance,mesh,i"},
		{resource, prefix + "task", "Unexpected number of separators"},
		{resource, strings.Replace(prefix, "us-east-1", "eu-west-1", 1) + "task/x",
			"Region eu-west-1. Your region is us-east-1."},
		{resource, strings.Replace(prefix, "123456789012", "210987654321", 1) + "task/x",
			"Account 210987654321. Your account is 123456789012."},
		{resource, strings.Replace(prefix, ":ecs:", ":ec2:", 1) + "task/x", `Unexpected service "ec2".`},
	} {
		got, err := tt.read(tt.text)
		if err != nil {
			got = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "InvalidParameterException: "),
				"Invalid identifier: ")
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestReadRevision(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		family   string
		revision int
		err      string
	}{
		"web":                            {"web", 0, ""},
		"web:12":                         {"web", 12, ""},
		prefix + "task-definition/web:1": {"web", 1, ""},
		prefix + "task-definition/web":   {"web", 0, ""},
		"web:0":                          {err: "InvalidParameterException: Invalid revision number. Number: 0"},
		"web:":                           {err: "InvalidParameterException: Invalid revision number. Number: "},
		"":                               {err: "ClientException: Family contains invalid characters."},
		"a b":                            {err: "ClientException: Family contains invalid characters."},
		prefix + "task/web": {
			err: "InvalidParameterException: Invalid identifier: Expected a task-definition, got a task.",
		},
	} {
		family, revision, err := account.Revision(text)
		message := ""
		if err != nil {
			message = err.Error()
		}
		testkit.Equal(t, "family", family, want.family)
		testkit.Equal(t, "revision", revision, want.revision)
		testkit.Equal(t, "message", message, want.err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{prefix + "task/a/b", prefix + "cluster/c", prefix + "task-definition/f:1", "arn:::::",
		"x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := account.Parse(text)
		if err != nil {
			return
		}
		again := prefix + r.Kind + "/" + r.Name
		if r.Cluster != "" {
			again = prefix + r.Kind + "/" + r.Cluster + "/" + r.Name
		}
		if again != text && r.Cluster != "" {
			t.Errorf("%q became %q", text, again)
		}
	})
}
