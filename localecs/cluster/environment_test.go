package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/taskdef"
)

// of returns a Store.
func of(values map[string]string) Store {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

const (
	firstFile  = "arn:aws:s3:::bucket/first.env"
	secondFile = "arn:aws:s3:::bucket/second.env"
)

// The whole precedence of the AWS documentation in one container: each name is set by its own source and all below it.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	agents := []string{
		"ECS_CONTAINER_METADATA_URI_V4", "ECS_CONTAINER_METADATA_URI", "ECS_AGENT_URI", "AWS_EXECUTION_ENV",
		"AWS_REGION", "AWS_DEFAULT_REGION", "HOSTNAME", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	}
	c := taskdef.Container{
		Name:             "web",
		EnvironmentFiles: []taskdef.EnvironmentFile{{Value: firstFile, Type: "s3"}, {Value: secondFile, Type: "s3"}},
		Environment:      []taskdef.KeyValue{{Name: "D", Value: "definition"}, {Name: "E", Value: "definition"}},
		Secrets:          []taskdef.Secret{{Name: "E", ValueFrom: "key"}},
	}
	for _, name := range agents {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: name, Value: "mine"})
	}
	s := Sources{
		Image: []string{"A=image", "B=image", "C=image", "D=image", "E=image"},
		Files: of(map[string]string{
			firstFile:  "C=first\nD=first\nE=first",
			secondFile: "B=second\nC=second\nD=second\nE=second",
		}),
		Secrets: of(map[string]string{"key": "secret"}),
		Agent:   Agent{Host: "169.254.170.2", EndpointID: "id-1", CredentialsID: "uuid", Region: "eu-west-1", Hostname: "ip-10-0-1-23.eu-west-1.compute.internal"},
	}
	got, err := List(c, s)
	want := []string{
		"A=image",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/credentials/uuid",
		"AWS_DEFAULT_REGION=eu-west-1",
		"AWS_EXECUTION_ENV=AWS_ECS_FARGATE",
		"AWS_REGION=eu-west-1",
		"B=second", "C=first", "D=definition", "E=secret",
		"ECS_AGENT_URI=http://169.254.170.2/api/id-1",
		"ECS_CONTAINER_METADATA_URI=http://169.254.170.2/v3/id-1",
		"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/id-1",
		"HOSTNAME=ip-10-0-1-23.eu-west-1.compute.internal",
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("error %v, difference %s", err, cmp.Diff(want, got))
	}
	s.Agent.CredentialsID = ""
	got, _ = List(c, s)
	if text := strings.Join(got, "\n"); strings.Contains(text, "RELATIVE_URI") {
		t.Errorf("a task without a role has a credentials URI, the user's own:\n%s", text)
	}
}

// On AWS the SDKs find ECS by its name.
func TestWhereECSIs(t *testing.T) {
	t.Parallel()
	own := taskdef.Container{Name: "web", Environment: []taskdef.KeyValue{{Name: "AWS_ENDPOINT_URL_ECS", Value: "http://mine"}}}
	for _, tt := range []struct {
		container taskdef.Container
		ecs, want string
	}{
		{taskdef.Container{Name: "web"}, "", ""},
		{taskdef.Container{Name: "web"}, "http://10.42.0.1", "AWS_ENDPOINT_URL_ECS=http://10.42.0.1"},
		{own, "http://10.42.0.1", "AWS_ENDPOINT_URL_ECS=http://mine"},
	} {
		list, err := List(tt.container, Sources{Agent: Agent{Host: "169.254.170.2", ECS: tt.ecs}})
		got := ""
		for _, v := range list {
			if strings.HasPrefix(v, "AWS_ENDPOINT_URL") {
				got += v
			}
		}
		if err != nil || got != tt.want {
			t.Errorf("%q, %v; want %q", got, err, tt.want)
		}
	}
}

// A host other than Fargate's has to be said in full, and none of the user's own ways to credentials is left.
func TestAgentAtAnotherHost(t *testing.T) {
	t.Parallel()
	c := taskdef.Container{Name: "web"}
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED"} {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: name, Value: "mine"})
	}
	common := []string{
		"AWS_DEFAULT_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_EXECUTION_ENV=AWS_ECS_FARGATE", "AWS_REGION=eu-west-1",
		"ECS_AGENT_URI=http://127.0.0.1:4711/api/id-1",
		"ECS_CONTAINER_METADATA_URI=http://127.0.0.1:4711/v3/id-1",
		"ECS_CONTAINER_METADATA_URI_V4=http://127.0.0.1:4711/v4/id-1",
		"HOSTNAME=h",
	}
	for id, want := range map[string][]string{
		"":     common,
		"uuid": append([]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:4711/v2/credentials/uuid"}, common...),
	} {
		got, err := List(c, Sources{Agent: Agent{Host: "127.0.0.1:4711", EndpointID: "id-1", CredentialsID: id, Region: "eu-west-1", Hostname: "h"}})
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("credentials %q: error %v, difference %s", id, err, cmp.Diff(want, got))
		}
	}
}

func TestMissingValueNamesContainerAndSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		container taskdef.Container
		want      string
	}{
		{
			taskdef.Container{Name: "web", EnvironmentFiles: []taskdef.EnvironmentFile{{Value: firstFile}}},
			"ResourceInitializationError: failed to download env files: container web: no content for arn:aws:s3:::bucket/first.env; add it to the local environment files",
		},
		{
			taskdef.Container{Name: "web", EnvironmentFiles: []taskdef.EnvironmentFile{{Value: secondFile}}},
			"ResourceInitializationError: failed to download env files: container web: arn:aws:s3:::bucket/second.env: environment file, line 2: bufio.Scanner: token too long",
		},
		{
			taskdef.Container{Name: "web", Secrets: []taskdef.Secret{{Name: "KEY", ValueFrom: "key"}}},
			"ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: container web, secret KEY: unable to retrieve parameters from ssm: invalid parameters: no value for key; add it to the local secrets",
		},
	} {
		files := of(map[string]string{secondFile: "A=1\nB=" + strings.Repeat("x", 64<<10)})
		list, err := List(c.container, Sources{Files: files, Secrets: of(nil)})
		if err == nil || err.Error() != c.want {
			t.Errorf("error\n%v, want\n%s", err, c.want)
		}
		if list != nil {
			t.Errorf("list %v, want none", list)
		}
	}
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want map[string]string
	}{
		"plain":                   {"A=1\nB=two words\n", map[string]string{"A": "1", "B": "two words"}},
		"no newline at the end":   {"A=1\nB=2", map[string]string{"A": "1", "B": "2"}},
		"comments":                {"#A=1\n# B=2\n #C=3\n", map[string]string{" #C": "3"}},
		"no equals sign":          {"A\n\nexport B\nC=1\n", map[string]string{"C": "1"}},
		"first equals sign":       {"A=b=c==\n", map[string]string{"A": "b=c=="}},
		"quotes stay":             {"A=\"x y\"\nB='z'\n", map[string]string{"A": `"x y"`, "B": "'z'"}},
		"spaces stay":             {"A = 1 \n  B=2\n", map[string]string{"A ": " 1 ", "  B": "2"}},
		"no expansion":            {"A=$HOME\nB=${A}\nC=\\n\n", map[string]string{"A": "$HOME", "B": "${A}", "C": `\n`}},
		"empty name":              {"=1\nA=2\n", map[string]string{"A": "2"}},
		"empty value":             {"A=\n", map[string]string{"A": ""}},
		"twice in one file":       {"A=1\nA=2\n", map[string]string{"A": "2"}},
		"trailing comment stays":  {"A=1 # one\n", map[string]string{"A": "1 # one"}},
		"carriage returns go":     {"A=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}},
		"nothing":                 {"", map[string]string{}},
		"export is part of names": {"export A=1\n", map[string]string{"export A": "1"}},
	} {
		got, err := parseFile(c.text)
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: error %v, difference %s", name, err, cmp.Diff(c.want, got))
		}
	}
}

// Whatever a file holds, names and values are usable and a written-out result reads back the same.
func FuzzParseFile(f *testing.F) {
	for _, text := range []string{"A=1\nB=2", "#A=1", "=", "A==", "A=\r\r\n", "\x00=\x00", "a\nb=\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseFile(text)
		if err != nil {
			if len(text) < 64<<10 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		var again strings.Builder
		for name, value := range got {
			if name == "" || strings.ContainsAny(name, "=\n") {
				t.Fatalf("%q gave name %q", text, name)
			}
			if strings.HasPrefix(name, "#") || strings.Contains(value, "\n") {
				t.Fatalf("%q gave name %q, value %q", text, name, value)
			}
			again.WriteString(name + "=" + value + "\r\n")
		}
		if second, err := parseFile(again.String()); err != nil || !cmp.Equal(second, got) {
			t.Fatalf("%q: error %v, difference %s", text, err, cmp.Diff(got, second))
		}
	})
}
