package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestMain is the program that shells complete, when it is called by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "my-prog" {
		os.Exit(cli.Main(prog(), os.Args[1:], func(string) string { return "" }, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// prog has a command with flags of each kind, and one whose arguments are words.
func prog() cli.App {
	of := ""
	return cli.With(cli.App{Name: "my-prog", Version: "v1", Commands: map[string]cli.Command{
		"run": {
			Synopsis: "Run it",
			Flags: func(fs *flag.FlagSet) {
				fs.Bool("json", false, "write `JSON`, not text; for programs")
				fs.String("network", "awsvpc", "`how` they are connected")
				fs.String("dir", "", "a directory")
			},
			FlagsAnywhere: true,
			Complete:      cli.Values(map[string][]string{"network": {"awsvpc", "host"}}),
		},
		"logs": {
			Synopsis: "Show logs",
			Flags: func(fs *flag.FlagSet) {
				fs.Bool("follow", false, "go on")
				fs.StringVar(&of, "of", "", "whose")
			},
			Complete: func(flag string, args []string) []string {
				if of != "" {
					return []string{of + "-1"}
				}
				if len(args) == 0 {
					return []string{"web", "web-2", "api"}
				}
				return []string{}
			},
		},
		"version": {Synopsis: "Print it"},
		"verbs":   {Synopsis: "Do it", Complete: cli.Verbs("long", "short")},
	}})
}

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                         "completion logs run verbs version --help --version",
		"r":                        "run",
		"--":                       "--help --version",
		"nosuch ":                  "",
		"run ":                     "FILES",
		"run -":                    "-dir -json -network -help",
		"run --n":                  "--network",
		"run -json -n":             "-network",
		"run -network ":            "awsvpc host",
		"run -network h":           "host",
		"run -network = ":          "awsvpc host",
		"run -network =":           "awsvpc host",
		"run -network = a":         "awsvpc",
		"run -network = host -d":   "-dir",
		"run -dir ":                "FILES",
		"run -dir x -json ":        "FILES",
		"run -json x":              "FILES",
		"run file -":               "-dir -json -network -help",
		"run file -json -network ": "awsvpc host",
		"run file -network =":      "awsvpc host",
		"run file -- -":            "FILES",
		"logs -follow web -":       "",
		"run -nosuch ":             "FILES",
		"logs ":                    "web web-2 api",
		"logs -follow w":           "web web-2",
		"logs -- ":                 "web web-2 api",
		"logs web ":                "",
		"logs -- web ":             "",
		"version ":                 "FILES",
		"version -":                "-help",
		"completion ":              "bash zsh fish",
		"completion z":             "zsh",
		"completion bash ":         "",
	} {
		words, files := cli.Words(prog(), strings.Split(line, " "))
		var got []string
		for _, w := range words {
			got = append(got, w.Text)
		}
		if files {
			got = append(got, "FILES")
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	words, _ := cli.Words(prog(), []string{"run", "-j"})
	if want := []cli.Word{{Text: "-json", Means: "write JSON, not text"}}; !slices.Equal(words, want) {
		t.Errorf("got %q", words)
	}
	if words, _ := cli.Words(prog(), nil); len(words) != 7 {
		t.Errorf("nothing typed: %q", words)
	}
}

// called has this binary on PATH as the program.
func called(t *testing.T) (env []string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "my-prog")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web.json", "web page.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PATH="+dir+":"+os.Getenv("PATH"), "DIR="+dir)
}

// TestBash has a real bash complete lines as it does at a Tab.
func TestBash(t *testing.T) {
	t.Parallel()
	bash := testkit.RequireBinary(t, "bash")
	env := called(t)
	for words, want := range map[string]string{
		`my-prog ""`:                    "completion|logs|run|verbs|version|--help|--version",
		`my-prog run -n`:                "-network",
		`my-prog run -network ""`:       "awsvpc|host",
		`my-prog run -network = ""`:     "awsvpc|host",
		`my-prog run -network =`:        "awsvpc|host",
		`my-prog logs -follow w`:        "web|web-2",
		`my-prog run -json "$DIR/web"`:  "DIR/web page.json|DIR/web.json",
		`"$DIR/my-prog" run -network h`: "host",
		`my-prog nosuch ""`:             "",
		`my-prog run -- "$DIR/web.j"`:   "DIR/web.json",
	} {
		cmd := exec.Command(bash, "--norc", "-c", `source <(my-prog completion bash)
complete -p my-prog | grep -q -- '-F _my_prog' || exit 9
COMP_WORDS=(`+words+`); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _my_prog
IFS='|'; echo "${COMPREPLY[*]}"`)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", words, err, out)
			continue
		}
		got := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), env[len(env)-1][len("DIR="):], "DIR")), "|")
		if strings.HasPrefix(want, "DIR") { // in the order of the directory
			slices.Sort(got)
		}
		if diff := cmp.Diff(want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", words, diff)
		}
	}
}

// TestScripts has each shell that this machine has read its script, and shows the
// scripts to who reviews a change.
func TestScripts(t *testing.T) {
	t.Parallel()
	env := called(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out, stderr bytes.Buffer
		if code := cli.Main(prog(), []string{"completion", shell}, func(string) string { return "" }, nil, &out, &stderr); code != 0 {
			t.Fatalf("%s: %d, %s", shell, code, stderr.String())
		}
		testkit.Golden(t, shell+".golden", out.Bytes())
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // its golden file was made with one
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = &out
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %v: %s", shell, err, said)
		}
	}
	if fish, err := exec.LookPath("fish"); err == nil {
		cmd := exec.Command(fish, "--no-config", "-c", `my-prog completion fish | source; complete -C "my-prog run -network "; complete -C "my-prog run $DIR/web.j"`)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if want := "awsvpc\nhost\n" + env[len(env)-1][len("DIR="):] + "/web.json\n"; err != nil || string(out) != want {
			t.Errorf("fish: %v: %s", err, out)
		}
	}
}

func TestShellsAreNamed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		var out, stderr bytes.Buffer
		if code := cli.Main(prog(), args, func(string) string { return "" }, nil, &out, &stderr); code != 1 || stderr.String() != "my-prog completion: want one of bash, zsh, fish\n" {
			t.Errorf("%q: %d, %s", args, code, stderr.String())
		}
	}
}

// `completion bash > FILE` on a full disk is no success.
func TestScriptThatNobodyTakes(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	reader.CloseWithError(errors.New("disk is full"))
	var stderr bytes.Buffer
	code := cli.Main(prog(), []string{"completion", "bash"}, func(string) string { return "" }, nil, writer, &stderr)
	if code != cli.ExitUnknown || !strings.Contains(stderr.String(), "disk is full") {
		t.Errorf("%d, %s", code, stderr.String())
	}
}
