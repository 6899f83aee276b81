package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// writeFile writes files into their own directory.
func writeFile(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// images returns the flags of -image.
func images(t *testing.T, flags ...string) (f Flags) {
	t.Helper()
	for _, flag := range flags {
		if err := f.Set(flag); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

const (
	shop = `{"family": "shop", "networkMode": "awsvpc", "taskRoleArn": "arn:aws-cn:iam::222222222222:role/team/shop",
	"executionRoleArn": "arn:aws-cn:iam::222222222222:role/team/execution", "containerDefinitions": [
		{"name": "db", "image": "mysql:8", "memory": 64,
		 "secrets": [{"name": "ROOT",
		"valueFrom": "arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf:root::"}]},
		{"name": "web", "image": "web:1", "memory": 64, "command": ["web"], "environmentFiles": [{"type": "s3",
		"value": "arn:aws:s3:::b/web.env"}],
		 "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-region": "eu-west-1", "awslogs-group": "g"}},
		 "secrets": [{"name": "PASSWORD",
		"valueFrom": "arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf:web::"}, {"name": "KEY",
		"valueFrom": "/web/key"}]}]}`
	job = `{"family": "job", "networkMode": "awsvpc", "containerDefinitions": [{"name": "job", "image": "web:1", ` +
		`"memory": 64}]}`
)

func TestEveryMissingValueIsNamedWithItsFlag(t *testing.T) {
	t.Parallel()
	dir := writeFile(t, map[string]string{"shop.json": shop, "job.json": job})
	_, _, err := PrepareDefinitions([]string{filepath.Join(dir, "shop.json"), filepath.Join(dir, "job.json")},
		Sources{Network: network.AWSVPC})
	want := `this is missing; add these flags, or the same in localecs.yaml beside the definition:
  -image 'mysql:8=PROGRAM,host'
      programs for shop/db; shop/db runs the first one, as the definition leaves that to the image
  -image 'web:1=PROGRAM,host'
      programs for shop/web, job/job; job/job runs the first one, as the definition leaves that to the image
  -secret 'arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf={"root":"VALUE","web":"VALUE"}'
      shop/db's ROOT; shop/web's PASSWORD
  -environment-file 'arn:aws:s3:::b/web.env=FILE'
      variables of shop/web
  -secret '/web/key=VALUE'
      shop/web's KEY
PROGRAM is a name on PATH or a path of this machine, host is all that it has installed; -image '*=host' is for all images`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An engine has the images, and their commands.
	_, _, err = PrepareDefinitions([]string{filepath.Join(dir, "job.json")},
		Sources{Network: network.AWSVPC, EngineImages: true})
	if err != nil {
		t.Error(err)
	}
	_, _, err = PrepareDefinitions([]string{filepath.Join(dir, "job.json")},
		Sources{Network: network.AWSVPC, Images: images(t, "*=host")})
	want = `this is missing; add these flags, or the same in localecs.yaml beside the definition:
  -cmd 'web:1=PROGRAM ARGUMENT...'
      what job runs, as the definition leaves that to the image`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestFlagsAndFileSupplyMissingValues(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	dir := writeFile(t, map[string]string{
		"shop.json": shop, "job.json": job, "web.env": "A=1\n",
		"localecs.yaml": `
images: {"web:1": {programs: {/bin/web: /bin/sh}, cmd: [web]}, "unused:1": {programs: {/x: /no/such/file}}}
secrets: {/web/key: k}
environmentFiles: {"arn:aws:s3:::b/web.env": web.env}
roles: {team/other: {}}
`})
	s := Sources{
		Network: network.AWSVPC, Images: images(t, "mysql:8=sh", "mysql:9=sh"),
		Secrets: map[string]string{
			"arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf": `{"root": "r", "web": "w"}`,
		},
	}
	paths := []string{filepath.Join(dir, "shop.json"), filepath.Join(dir, "job.json"), filepath.Join(dir, "job.json")}
	p, warnings, err := PrepareDefinitions(paths, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no container is of the image mysql:9: the definitions have mysql:8, web:1"},
		warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	testkit.Equal(t, "Name()", p.Name(), "shop+job+job-2")
	testkit.Equal(t, "file.Region", p.file.Region, "eu-west-1")
	testkit.Equal(t, "file.Account", p.file.Account, "222222222222")
	if got := p.environmentFiles["arn:aws:s3:::b/web.env"]; got != "A=1\n" {
		t.Errorf("environment file %q", got)
	}
	if diff := cmp.Diff([]iam.Role{
		{Name: "other", Path: "/team/", Account: "222222222222", Partition: "aws"},
		{Name: "shop", Path: "/team/", Account: "222222222222", Partition: "aws-cn"},
	}, p.roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	s.Secrets["arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf"] = `{"root": "r"}`
	if _, _, err := PrepareDefinitions(paths, s); err == nil ||
		!strings.Contains(err.Error(),
			"container web, secret PASSWORD: unable to retrieve secret from asm: retrieved secret from Secrets "+
				"Manager did not contain json key web") {
		t.Errorf("got %v", err)
	}
}

// The file has a form for what flags take, and nothing in it is ignored.
func TestFileBesideTheDefinition(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	dir := writeFile(t, map[string]string{"shop.json": shop, "web.env": "", "key": "k\n", "localecs.yaml": `
images: {"*": {programs: host, cmd: [sh]}}
secrets:
  /web/key: {file: key}
  arn:aws:secretsmanager:eu-west-1:222222222222:secret:db-AbCdEf: '{"root": "r", "web": "w"}'
environmentFiles: {"arn:aws:s3:::b/web.env": web.env}
`})
	path := filepath.Join(dir, "shop.json")
	p, _, err := PrepareDefinitions([]string{path}, Sources{Network: network.AWSVPC})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "secrets[/web/key]", p.secrets["/web/key"], "k")
	testkit.Equal(t, "Cmd of mysql:8", strings.Join(p.images["mysql:8"].Cmd, " "), "sh")
	if p.images["mysql:8"].Files["/usr/bin"] == "" {
		t.Errorf("mysql:8 is %+v, want what this machine has installed", p.images["mysql:8"])
	}
	testkit.Equal(t, "MissingImages", len(p.MissingImages()), 0)

	all := "name: x\nconsul: {datacenter: a}\ntasks: {a: a}\nservices: {b: {definition: a}}\nseed: 1\n" +
		"steps: [{start: [a]}]\n" +
		"guardDuty: {image: i}\nfaults: [{server: down}]\nchecks: {minRequests: 1}\n"
	if err := os.WriteFile(filepath.Join(dir, "localecs.yaml"), []byte(all), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, err = PrepareDefinitions([]string{path}, Sources{Network: network.AWSVPC})
	testkit.ErrorContains(t, err, "localecs.yaml: name, consul, tasks, services, guardDuty, seed, faults, "+
		"steps, checks: only scenarios have this: localecs run takes them as DIR/scenario.yaml")
	_, _, err = PrepareDefinitions([]string{path},
		Sources{Network: network.AWSVPC, Setting: filepath.Join(dir, "localecs.yaml")})
	testkit.ErrorContains(t, err, "this is missing") // a scenario that is named may have more
}

func TestTasksHaveNames(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	dir := writeFile(t, map[string]string{"job.json": job, "localecs.yaml": "region: eu-west-1\n", "a=b.json": job})
	file := filepath.Join(dir, "job.json")
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{file, file}, "job+job-2"},
		{[]string{"night=" + file, file, "day=" + file}, "night+job+day"},
		{[]string{filepath.Join(dir, "a=b.json")}, "job"},
	} {
		p, _, err := PrepareDefinitions(c.paths, Sources{Network: network.AWSVPC, Images: images(t, "*=sh")})
		if err != nil {
			t.Fatalf("%q: got %v, %v", c.paths, p, err)
		}
		testkit.Equal(t, "Name()", p.Name(), c.want)
		testkit.Equal(t, "file.Region", p.file.Region, "eu-west-1")
	}
	_, _, err := PrepareDefinitions([]string{"=" + file, ".x=" + file},
		Sources{Network: network.AWSVPC, Images: images(t, "*=sh")})
	if want := `".x": want letters, digits, _ . and -: it is the name of a directory`; err == nil ||
		err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestSettingsOfTwoPlacesNeedAChoice(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	a := writeFile(t, map[string]string{"job.json": job, "localecs.yaml": "region: eu-west-1\n"})
	b := writeFile(t, map[string]string{"job.json": job, "localecs.yaml": "region: eu-west-2\n"})
	paths := []string{filepath.Join(a, "job.json"), filepath.Join(b, "job.json")}
	_, _, err := PrepareDefinitions(paths, Sources{Network: network.AWSVPC, Images: images(t, "*=sh")})
	if err == nil || !strings.HasSuffix(err.Error(), "localecs.yaml: choose one with -images") {
		t.Errorf("got %v", err)
	}
	p, _, err := PrepareDefinitions(paths,
		Sources{Network: network.AWSVPC, Images: images(t, "*=sh"), Setting: filepath.Join(b, "localecs.yaml")})
	if err != nil || p.file.Region != "eu-west-2" {
		t.Errorf("got %v, %v", p, err)
	}
	c := writeFile(t, map[string]string{"job.json": job})
	p, _, err = PrepareDefinitions([]string{filepath.Join(c, "job.json")},
		Sources{Network: network.Host, Images: images(t, "*=sh")})
	if err != nil || p.file.Subnet != "127.42.0.0/24" {
		t.Errorf("host networking: %v, %v", p, err)
	}
}

func TestDefinitionsAreRecognisedByContent(t *testing.T) {
	t.Parallel()
	dir := writeFile(t, map[string]string{
		"a.json": job, "described.json": `{"taskDefinition": {}}`, "list.json": `[{"name": "a"}]`, "no-extension": job,
		"cut.json": `{"family": `, "empty.json": "", "scenario.json": `{"name": "x", "tasks": {}}`,
		"scenario.yaml": "name: x\n", "list.yaml": "[a]", "yaml-definition.yaml": "containerDefinitions: []\n",
	})
	for name, want := range map[string]bool{
		"a.json": true, "described.json": true, "list.json": true, "no-extension": true,
		"x=y.json": true, "cut.json": true, "empty.json": true, "x/y=z": false,
		"scenario.json": false, "scenario.yaml": false, "list.yaml": false, "yaml-definition.yaml": false,
		"none.json": true, "none.yaml": false, ".": false,
	} {
		if got := IsDefinition(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
