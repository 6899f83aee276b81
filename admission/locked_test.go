package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// lockOf returns a lock of the images of the mesh, and of the application's with these platforms;
// without that one for none.
func lockOf(platforms map[string]taskdef.ImageConfig) *taskdef.ImageLock {
	lock := &taskdef.ImageLock{Images: map[string]taskdef.LockedImage{
		testImage:    {Digest: digestOf("1"), Platforms: bothPlatforms(taskdef.ImageConfig{})},
		defaultEnvoy: {Digest: digestOf("2"), Platforms: bothPlatforms(taskdef.ImageConfig{})},
	}}
	if platforms != nil {
		lock.Images["example/app:1"] = taskdef.LockedImage{Digest: digestOf("a"), Platforms: platforms}
	}
	return lock
}

func bothPlatforms(config taskdef.ImageConfig) map[string]taskdef.ImageConfig {
	return map[string]taskdef.ImageConfig{"linux/amd64": config, "linux/arm64": config}
}

func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func admitLocked(t *testing.T, doc []byte, lock *taskdef.ImageLock, pin bool) *Result {
	t.Helper()
	r, err := Admit(doc, Options{Mesh: parseMesh(t, []byte(plainMesh)), Lock: lock, Pin: pin})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// warningsOf returns the codes of a result's findings without infos.
func warningsOf(r *Result) string {
	var codes []string
	for _, f := range r.Findings {
		if f.Severity != Info {
			codes = append(codes, f.Code)
		}
	}
	return strings.Join(codes, " ")
}

// The line is what Docker would run of the image, and admitting it again changes nothing, with
// the lock or without it. With the lock of a newer image the result is that of the plain
// definition.
func TestLockedImageGivesTheProgram(t *testing.T) {
	t.Parallel()
	const await = "/consul/consul-ecs app-entrypoint -await-proxy http://127.0.0.1:22000/ready"
	nginx := taskdef.ImageConfig{Entrypoint: []string{"/docker-entrypoint.sh"},
		Cmd: []string{"nginx", "-g", "daemon off;"}, StopSignal: "SIGQUIT"}
	program := taskdef.ImageConfig{Cmd: []string{"serve"}}
	overlay := taskdef.ImageConfig{Entrypoint: []string{"/init"}, StopSignal: "SIGQUIT"}
	const yes, no = `"dockerLabels": {"consul.hashicorp.com/wrap": "true"}`,
		`"dockerLabels": {"consul.hashicorp.com/wrap": "false"}`
	const hand = `"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "-stop-signal", "INT"]`
	for name, c := range map[string]struct {
		app                        string
		image                      taskdef.ImageConfig
		entryPoint, command, codes string
	}{
		"nothing": {
			`"user": "7"`, nginx, await + " -stop-signal QUIT /docker-entrypoint.sh", "nginx -g daemon off;", "",
		},
		"empty lists": {
			`"entryPoint": [], "command": []`, nginx, await + " -stop-signal QUIT /docker-entrypoint.sh",
			"nginx -g daemon off;", "",
		},
		"command": {
			`"command": ["start"]`, nginx, await + " -stop-signal QUIT /docker-entrypoint.sh", "start", "",
		},
		"options": {
			`"command": ["--debug"]`, nginx, await + " -stop-signal QUIT /docker-entrypoint.sh", "--debug", "",
		},
		"absolute path": {
			`"command": ["/app"]`, nginx, await + " -stop-signal QUIT /docker-entrypoint.sh", "/app", "",
		},
		"entryPoint clears the CMD": {`"entryPoint": ["/app"]`, nginx, await + " -stop-signal QUIT /app", "", ""},
		"empty ENTRYPOINT": {
			`"user": "7"`, taskdef.ImageConfig{Entrypoint: []string{""}, Cmd: []string{"serve"}}, await, "serve", "",
		},
		"CMD alone":              {`"user": "7"`, program, await, "serve", ""},
		"command, no ENTRYPOINT": {`"command": ["start"]`, program, await, "start", ""},
		"options, no ENTRYPOINT": {`"command": ["--debug"]`, program, "", "--debug", codeWrap},
		"no command anywhere":    {`"user": "7"`, taskdef.ImageConfig{}, "", "", codeWrap},
		"by hand, without a program": {
			hand, nginx, await + " -stop-signal INT /docker-entrypoint.sh", "nginx -g daemon off;", "",
		},
		"by hand, with a program": {
			hand + `, "command": ["start"]`, nginx, await + " -stop-signal INT", "start", codeEntryPoint,
		},
		"the command is the program": {
			`"command": ["start"], ` + yes, nginx, await + " -stop-signal QUIT", "start", codeEntryPoint,
		},
		"the command is all": {`"command": ["start"], ` + yes, program, await, "start", ""},
		"not to be wrapped":  {`"command": ["start"], ` + no, nginx, "", "start", ""},
		"ENTRYPOINT emptied": {
			`"entryPoint": [""], "command": ["start"]`, nginx, await + " -stop-signal QUIT", "start", "",
		},
		"must be process 1":               {`"user": "7"`, overlay, "", "", codeWrap},
		"must be process 1, with command": {`"command": ["serve"]`, overlay, "", "serve", codeWrap},
		"TERM is no flag":                 {plainApp, taskdef.ImageConfig{StopSignal: "15"}, await + " /app", "", ""},
		"signal by number": {
			plainApp, taskdef.ImageConfig{StopSignal: "28"}, await + " -stop-signal WINCH /app", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lock := lockOf(bothPlatforms(c.image))
			r := admitLocked(t, definition("", c.app), lock, false)
			app := r.After.Definition.ContainerDefinitions[0]
			if got := strings.Join(app.EntryPoint, " "); got != c.entryPoint {
				t.Errorf("entryPoint %q, want %q", got, c.entryPoint)
			}
			if got := strings.Join(app.Command, " "); got != c.command {
				t.Errorf("command %q, want %q", got, c.command)
			}
			if got := warningsOf(r); got != c.codes {
				t.Errorf("findings %v, want %q", r.Findings, c.codes)
			}
			if again := admitLocked(t, r.After.Bytes(), lock,
				false); string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("with the lock again:\n%s", taskdef.Diff(r.After, again.After))
			}
			if again := admitLocked(t, r.After.Bytes(), nil,
				false); string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("without the lock:\n%s", taskdef.Diff(r.After, again.After))
			}
			for _, newer := range []taskdef.ImageConfig{{Entrypoint: []string{"/new"}, Cmd: []string{"x"},
				StopSignal: "INT"}, {Entrypoint: []string{"/only"}}, {Cmd: []string{"y"}}, overlay} {
				lock := lockOf(bothPlatforms(newer))
				want, got := lines(admitLocked(t, definition("", c.app), lock, false)),
					lines(admitLocked(t, r.After.Bytes(), lock, false))
				if !slices.Equal(got, want) {
					t.Errorf("with the image %v: %q, want %q", newer, got, want)
				}
			}
		})
	}
}

// lines returns the words of the first container.
func lines(r *Result) []string {
	c := r.After.Definition.ContainerDefinitions[0]
	return append(slices.Clone(c.EntryPoint), c.Command...)
}

// What the user changes in an admitted definition is the user's.
func TestChangedProgramOfAnImageIsTheUsers(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}))
	first := string(admitLocked(t, definition("", `"user": "7"`), lock, false).After.Bytes())
	for change, want := range map[string]string{
		`"serve"`: "/entry mine", `"/entry"`: "mine serve",
	} {
		r := admitLocked(t, []byte(strings.ReplaceAll(first, change, `"mine"`)), lock, false)
		if got := strings.Join(lines(r)[4:], " "); got != want {
			t.Errorf("%s changed: %q, want %q", change, got, want)
		}
	}
}

func TestLockedImagesArePinned(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}}))
	images := func(r *Result) string {
		var all []string
		for _, c := range r.After.Definition.ContainerDefinitions {
			all = append(all, c.Image)
		}
		return strings.Join(all, " ")
	}
	mesh := strings.Join([]string{testImage + "@" + digestOf("1"), defaultEnvoy + "@" + digestOf("2"),
		testImage + "@" + digestOf("1")}, " ")
	first := admitLocked(t, definition("", `"user": "7"`), lock, true)
	want := "example/app:1@" + digestOf("a") + " " + mesh
	if got := images(first); got != want {
		t.Errorf("images %s, want %s", got, want)
	}
	if again := admitLocked(t, first.After.Bytes(), lock,
		true); string(again.After.Bytes()) != string(first.After.Bytes()) {
		t.Errorf("pinned again:\n%s", taskdef.Diff(first.After, again.After))
	}
	app := lock.Images["example/app:1"]
	app.Digest = digestOf("b")
	lock.Images["example/app:1"] = app
	if got, want := images(admitLocked(t, first.After.Bytes(), lock, true)),
		"example/app:1@"+digestOf("b")+" "+mesh; got != want {
		t.Errorf("with a newer lock %s, want %s", got, want)
	}
	own := strings.Replace(string(definition("", `"user": "7"`)), "example/app:1", "example/app:1@"+digestOf("c"), 1)
	r := admitLocked(t, []byte(own), lock, true)
	if got, want := images(r), "example/app:1@"+digestOf("c")+" "+mesh; got != want {
		t.Errorf("the user's digest: %s, want %s", got, want)
	}
	if got, want := warningsOf(r), codeWrap+" "+codeImage; got != want {
		t.Errorf("findings %v, want %s", r.Findings, want)
	}
}

func TestPinnedDefinitionIsUnchangedByItsDescription(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"},
		StopSignal: "QUIT"}))
	first := admitLocked(t, definition("", `"user": "7"`), lock, true)
	again := admitLocked(t, describe(t, first), lock, true)
	if diff := taskdef.Diff(again.Plain, again.After); diff != "" {
		t.Errorf("changed:\n%s", diff)
	}
}

// The program is that of the lock, so an image may not stay the one of an earlier lock.
func TestDigestOfAnEarlierAdmissionGoesWithoutPin(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}}))
	first := admitLocked(t, definition("", `"user": "7"`), lock, true)
	again := admitLocked(t, first.After.Bytes(), lock, false)
	plain := admitLocked(t, definition("", `"user": "7"`), lock, false)
	if diff := taskdef.Diff(plain.After, again.After); diff != "" {
		t.Errorf("not as without a digest before:\n%s", diff)
	}
	unlocked := admitLocked(t, first.After.Bytes(), nil, false).After.Definition.ContainerDefinitions[0].Image
	if want := "example/app:1@" + digestOf("a"); unlocked != want {
		t.Errorf("without a lock %s, want %s", unlocked, want)
	}
}

func TestPinnedDefinitionIsAdmittedWithoutItsDigests(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}))
	first := admitLocked(t, definition("", `"user": "7"`), lock, true)
	for name, doc := range map[string][]byte{"as printed": first.After.Bytes(), "as described": describe(t, first)} {
		for _, lock := range []*taskdef.ImageLock{lock, nil} {
			if got := warningsOf(admitLocked(t, doc, lock, false)); got != "" {
				t.Errorf("%s, lock %t: findings %q", name, lock != nil, got)
			}
		}
	}
}

// An architecture that the definition leaves open matters only where the images differ.
func TestImageWhoseArchitecturesDifferIsUnknown(t *testing.T) {
	t.Parallel()
	const open = `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["EC2"],
		"containerDefinitions": [{"name": "app", "image": "example/app:1", "memory": 64}]}`
	same := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}}))
	if r := admitLocked(t, []byte(open), same, false); lines(r)[4] != "/entry" {
		t.Errorf("line %q", lines(r))
	}
	differ := lockOf(map[string]taskdef.ImageConfig{"linux/amd64": {Entrypoint: []string{"/a"}},
		"linux/arm64": {Entrypoint: []string{"/b"}}})
	r := admitLocked(t, []byte(open), differ, false)
	if got := warningsOf(r); len(lines(r)) > 0 || !strings.Contains(got, codeWrap+" "+codeImage) {
		t.Errorf("line %q, findings %v", lines(r), r.Findings)
	}
}

func TestCureOfAnUnwrappedApplicationIsNotTheLockThatIsGiven(t *testing.T) {
	t.Parallel()
	differ := lockOf(map[string]taskdef.ImageConfig{"linux/arm64": {}})
	for name, c := range map[string]struct {
		lock *taskdef.ImageLock
		app  string
		want string
	}{
		"no lock":         {nil, `"user": "7"`, "admit it with -images, or write "},
		"not in the lock": {lockOf(nil), `"user": "7"`, "lock its image, or write "},
		"in the lock":     {differ, `"user": "7"`, "write "},
		"a shell":         {lockOf(nil), `"command": ["sh", "-c", "serve"]`, "lock its image, or write "},
		"arguments":       {lockOf(nil), `"command": ["serve"]`, "lock its image, or write "},
		"options":         {lockOf(nil), `"command": ["--debug"]`, "lock its image, or write "},
	} {
		found := false
		for _, f := range admitLocked(t, definition("", c.app), c.lock, false).Findings {
			if f.Code != codeWrap && f.Code != codeEntryPoint {
				continue
			}
			found = true
			if !strings.HasPrefix(f.Fix, c.want) {
				t.Errorf("%s: fix %q, want %q first", name, f.Fix, c.want)
			}
		}
		if !found {
			t.Errorf("%s: no finding", name)
		}
	}
}

func TestUserOfAnImageIsChecked(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{User: "5995:0"}))
	if got := warningsOf(admitLocked(t, definition("", plainApp), lock, false)); got != codeUser {
		t.Errorf("findings %q, want %s", got, codeUser)
	}
	if got := warningsOf(admitLocked(t, definition("", plainApp+`, "user": "1000"`), lock, false)); got != "" {
		t.Errorf("with another user %q", got)
	}
}

func TestInjectedImagesHaveTheArchitectureOfTheTask(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{}))
	lock.Images[defaultEnvoy] = taskdef.LockedImage{Digest: digestOf("2"),
		Platforms: map[string]taskdef.ImageConfig{"linux/amd64": {}}}
	r := admitLocked(t, definition(`"runtimePlatform": {"cpuArchitecture": "ARM64"},`, plainApp), lock, false)
	if got := warningsOf(r); got != codeArchLocked {
		t.Errorf("findings %v, want %s", r.Findings, codeArchLocked)
	}
}

// Without a lock the name of an injected image counts as that of another one does.
func TestNamesOfInjectedImagesHaveTheArchitectureOfTheTask(t *testing.T) {
	t.Parallel()
	mesh := strings.TrimSuffix(plainMesh, "}") +
		`, "admission": {"images": {"consulECS": "your/consul-ecs:1.0.0-beta.1-arm64"}}}`
	r := admit(t, definition("", plainApp), parseMesh(t, []byte(mesh)))
	if got := warningsOf(r); got != codeArch+" "+codeArch {
		t.Errorf("findings %v", r.Findings)
	}
}

// Without a lock the ENTRYPOINT of the former image would be executed in the new one.
func TestChangedImageIsNamedWithoutALock(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}))
	first := string(admitLocked(t, definition("", `"user": "7"`), lock, true).After.Bytes())
	if got := warningsOf(admitLocked(t, []byte(first), nil, false)); got != "" {
		t.Errorf("findings %q of the same image", got)
	}
	changed := admitLocked(t, []byte(strings.Replace(first, "example/app:1", "example/app:2", 1)), nil, false)
	if got := warningsOf(changed); got != codeImage {
		t.Errorf("findings %q, want %s", got, codeImage)
	}
	if got := warningsOf(admitLocked(t, changed.After.Bytes(), nil, false)); got != codeImage {
		t.Errorf("admitted again: findings %q, want %s", got, codeImage)
	}
	lock.Images["example/app:2"] = taskdef.LockedImage{Digest: digestOf("b"),
		Platforms: bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/new"}})}
	locked := admitLocked(t,
		[]byte(strings.Replace(first, "example/app:1@"+digestOf("a"), "example/app:2", 1)), lock, false)
	if got := warningsOf(admitLocked(t, locked.After.Bytes(), nil, false)); got != "" {
		t.Errorf("findings %q after the cure", got)
	}
}

// A volume of the image within the read-only volume of the mesh has no directory.
func TestVolumesOfAnImageAreNotBelowTheSharedOne(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"/consul/data": codeVolume, "/consul/": "", "/consulate/data": ""} {
		lock := lockOf(bothPlatforms(taskdef.ImageConfig{Volumes: []string{dir}}))
		if got := warningsOf(admitLocked(t, definition("", plainApp), lock, false)); got != want {
			t.Errorf("%s: findings %q, want %q", dir, got, want)
		}
		if got := warningsOf(admitLocked(t, definition("", `"entryPoint": ["/init"]`), lock, false)); got != codeWrap {
			t.Errorf("%s of a container without the shared volume: findings %q", dir, got)
		}
	}
}

// Docker uses the CMD of an image only with its ENTRYPOINT, so a command that may be absent is
// not put behind a written one.
func TestCommandThatMayBeAbsentIsTheImages(t *testing.T) {
	t.Parallel()
	lock := lockOf(bothPlatforms(taskdef.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"serve"}}))
	for command, want := range map[string]string{
		`{"Fn::If": ["Debug", ["debug"], {"Ref": "AWS::NoValue"}]}`: codeWrap,
		`{"Fn::If": ["Debug", ["debug"], ["serve"]]}`:               "",
	} {
		doc := `{"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024",
			"ContainerDefinitions": [{"Name": "app", "Image": "example/app:1", "PortMappings": [{"ContainerPort": 80}], "Command": ` + command + `}]}`
		r := admitLocked(t, []byte(doc), lock, false)
		if got := warningsOf(r); got != want {
			t.Errorf("%s: findings %v, want %q", command, r.Findings, want)
		}
	}
}
