package runtime

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table of entry points and commands.
func TestArgvOfEntryPointAndCommand(t *testing.T) {
	t.Parallel()
	img := Image{Entrypoint: []string{"/entry", "-e"}, Cmd: []string{"serve"}}
	for _, tc := range []struct {
		name                string
		entryPoint, command []string
		want                []string
	}{
		{"neither: both of the image", nil, nil, []string{"/entry", "-e", "serve"}},
		{"command replaces CMD", nil, []string{"check"}, []string{"/entry", "-e", "check"}},
		{"entryPoint drops both of the image", []string{"/other"}, nil, []string{"/other"}},
		{"entryPoint and command", []string{"/other"}, []string{"x", "y"}, []string{"/other", "x", "y"}},
	} {
		if diff := cmp.Diff(tc.want, img.Argv(tc.entryPoint, tc.command)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	argv := img.Argv(nil, nil)
	argv[0] = "changed"
	if img.Entrypoint[0] != "/entry" {
		t.Error("the image's own command line was changed")
	}
	if got := (Image{}).Argv(nil, nil); len(got) != 0 {
		t.Errorf("empty image: %q", got)
	}
}

func TestStopSignal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]syscall.Signal{
		"": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "int": syscall.SIGINT, "3": syscall.SIGQUIT, "SIGUSR1": syscall.SIGUSR1, "sigquit": syscall.SIGQUIT,
	} {
		if got, err := (Image{StopSignal: text}).Signal(); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"SIGNONE", "0", "-1", "65", "TERM!"} {
		if got, err := (Image{StopSignal: text}).Signal(); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	img := Image{User: "envoy:7", Users: map[string]string{"envoy": "5995:5990", "consul": "100"}}
	for user, want := range map[string]Account{
		"":             {5995, 7, "/"},
		"root":         {0, 0, "/root"},
		"0":            {0, 0, "/root"},
		"envoy":        {5995, 5990, "/"},
		"5995":         {5995, 5990, "/"},
		"consul":       {100, 100, "/"},
		"1234":         {1234, 0, "/"},
		"1234:4321":    {1234, 4321, "/"},
		"envoy:consul": {5995, 100, "/"},
		"nobody":       {65534, 65534, "/"},
	} {
		if got, err := img.Account(user); got != want || err != nil {
			t.Errorf("%q: %+v, %v; want %+v", user, got, err, want)
		}
	}
	for user, want := range map[string]string{
		"ghost":       "unable to find user ghost: no matching entries in passwd file",
		"-1":          "unable to find user -1: no matching entries in passwd file",
		"4294967295":  "unable to find user 4294967295: no matching entries in passwd file",
		"envoy:ghost": "unable to find group ghost: no matching entries in group file",
	} {
		if got, err := img.Account(user); err == nil || err.Error() != want {
			t.Errorf("%q: %+v, %v; want %s", user, got, err, want)
		}
	}
	if got, err := (Image{}).Account(""); got != (Account{0, 0, "/root"}) || err != nil {
		t.Errorf("no user anywhere: %+v, %v", got, err)
	}
}

func TestPasswdAndGroup(t *testing.T) {
	t.Parallel()
	img := Image{Users: map[string]string{"envoy": "5995:5990"}}
	want := "envoy:x:5995:5990:envoy:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\nroot:x:0:0:root:/root:/bin/sh\n"
	if diff := cmp.Diff(want, img.Passwd()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("envoy:x:5990:\nnobody:x:65534:\nroot:x:0:\n", img.Group()); diff != "" {
		t.Error(diff)
	}
}

func TestValidateNamesTheMistake(t *testing.T) {
	t.Parallel()
	for want, img := range map[string]Image{
		`path "bin/sh"`:      {Programs: map[string]string{"bin/sh": "/bin/sh"}},
		`path "/"`:           {Files: map[string]string{"/": "/tmp"}},
		`path "data"`:        {Volumes: []Dir{{Path: "data"}}},
		`path "/.."`:         {Volumes: []Dir{{Path: "/.."}}},
		`path "here"`:        {WorkingDir: "here"},
		`user "a" is "b"`:    {Users: map[string]string{"a": "b"}},
		`user "a" is "1:b"`:  {Users: map[string]string{"a": "1:b"}},
		`stop signal "NONE"`: {StopSignal: "NONE"},
	} {
		img.Name = "broken"
		if err := img.Validate(); err == nil || !strings.Contains(err.Error(), `image "broken": `+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (Image{WorkingDir: "/w", Volumes: []Dir{{Path: "/d"}}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestImageForAllOthers(t *testing.T) {
	t.Parallel()
	images := Images{"web": {Name: "web", User: "1"}, AllImages: {Name: AllImages, User: "2"}}
	for name, user := range map[string]string{"web": "1", "db": "2"} {
		i, ok := images.Find(name)
		if diff := cmp.Diff(Image{Name: name, User: user}, i); diff != "" || !ok {
			t.Errorf("Find(%q) = %t (-want +got):\n%s", name, ok, diff)
		}
	}
	if i, ok := (Images{"web": {}}).Find("db"); ok {
		t.Errorf("Find of an unknown image returned %+v", i)
	}
}
