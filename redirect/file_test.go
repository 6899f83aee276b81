package redirect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/meshtask/consul-ecs/redirect"
)

func TestResolvConfAsksConsulFirstAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "nameserver 127.0.0.1\n"},
		{
			"a task's", "nameserver 10.0.0.2\nsearch eu-west-1.compute.internal\n",
			"nameserver 127.0.0.1\nnameserver 10.0.0.2\nsearch eu-west-1.compute.internal\n",
		},
		{
			"all options", "# made by hand\nsearch a.example b.example\nnameserver 10.0.0.2\nnameserver fd00::2\n" +
				"options ndots:2 timeout:1 attempts:5 rotate edns0 trust-ad\n",
			"# made by hand\nsearch a.example b.example\nnameserver 127.0.0.1\nnameserver 10.0.0.2\n" +
				"nameserver fd00::2\noptions ndots:2 timeout:1 attempts:5 rotate edns0 trust-ad\n",
		},
		{"no server, no line end", "options ndots:2", "options ndots:2\nnameserver 127.0.0.1\n"},
		{"asked last", "nameserver 10.0.0.2\nnameserver 127.0.0.1\n", "nameserver 127.0.0.1\nnameserver 10.0.0.2\n"},
		{
			"no line end", "search a.example\nnameserver\t10.0.0.2",
			"search a.example\nnameserver 127.0.0.1\nnameserver\t10.0.0.2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := redirect.ResolvConf(c.text)
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if again := redirect.ResolvConf(got); again != got {
				t.Errorf("a second call made\n%s\nof\n%s", again, got)
			}
		})
	}
}

func TestMergeHosts(t *testing.T) {
	t.Parallel()
	const own = "# consul-ecs upstreams: begin\n127.65.0.1 api\n127.65.0.2 db\n# consul-ecs upstreams: end\n"
	lines := []string{"127.65.0.1 api", "127.65.0.2 db"}
	for _, c := range []struct {
		name, text string
		lines      []string
		want       string
	}{
		{"empty", "", lines, own},
		{"first time", "127.0.0.1 localhost\n", lines, "127.0.0.1 localhost\n" + own},
		{"no line end", "127.0.0.1 localhost", lines, "127.0.0.1 localhost\n" + own},
		{"second time", "127.0.0.1 localhost\n" + own, lines, "127.0.0.1 localhost\n" + own},
		{
			"other upstreams, and a line added later",
			"127.0.0.1 localhost\n# consul-ecs upstreams: begin\n127.65.0.1 gone\n# consul-ecs upstreams: end\n" +
				"192.0.2.1 later\n", lines,
			"127.0.0.1 localhost\n192.0.2.1 later\n" + own,
		},
		{"no upstreams", "127.0.0.1 localhost\n" + own, nil, "127.0.0.1 localhost\n"},
		{"block without end", "# consul-ecs upstreams: begin\n192.0.2.1 whose\n", lines, "192.0.2.1 whose\n" + own},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := redirect.MergeHosts(c.text, c.lines); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A runtime mounts these files: another file of the same name would not be seen by the
// other containers, and a mount cannot be renamed over.
func TestFilesAreWrittenInPlaceWithTheirMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 10.0.0.2\n"), 0o604); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := redirect.UseConsulDNS(path); err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || after.Mode() != before.Mode() {
		t.Errorf("the file was replaced, or its mode changed from %s to %s", before.Mode(), after.Mode())
	}
	wantFile(t, path, "nameserver 127.0.0.1\nnameserver 10.0.0.2\n")
}

func TestHostsFileShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][]string{{"127.65.0.1 api", "127.65.0.2 db"}, nil} {
		if _, err := redirect.WriteHosts(path, lines); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, path, "127.0.0.1 localhost\n")
}

func TestUndoRestoresTheFilesText(t *testing.T) {
	t.Parallel()
	hosts := func(path string) (func() error, error) { return redirect.WriteHosts(path, []string{"127.65.0.1 api"}) }
	for name, tt := range map[string]struct {
		change func(path string) (func() error, error)
		text   string
	}{
		"hosts":                    {hosts, "127.0.0.1 localhost\n"},
		"hosts without a line end": {hosts, "127.0.0.1 localhost"},
		"hosts of an earlier run": {
			hosts, "# consul-ecs upstreams: begin\n127.65.0.9 db\n# consul-ecs upstreams: end\n127.0.0.1 localhost\n",
		},
		"empty hosts":                       {hosts, ""},
		"name servers":                      {redirect.UseConsulDNS, "search example\nnameserver 10.0.0.2\n"},
		"name servers without a line end":   {redirect.UseConsulDNS, "nameserver 10.0.0.2\nnameserver 127.0.0.1"},
		"name servers of an earlier run":    {redirect.UseConsulDNS, "nameserver 127.0.0.1\nnameserver 10.0.0.2\n"},
		"options and no name server at all": {redirect.UseConsulDNS, "options ndots:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			undo, err := tt.change(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := undo(); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, tt.text)
		})
	}
}

func TestUndoKeepsTheChangesOfOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver 10.0.0.2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	undo, err := redirect.UseConsulDNS(path)
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "nameserver 10.0.0.3\n"
	if err := os.WriteFile(path, []byte(theirs), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, theirs)
}

// The containers of a task may share the file, and start at the same time.
func TestContainersThatWriteAtOnceLeaveOneBlock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			line := fmt.Sprintf("127.65.0.1 api-%s", strings.Repeat("x", i))
			if _, err := redirect.WriteHosts(path, []string{line}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := redirect.WriteHosts(path, []string{"127.65.0.1 api"}); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "127.0.0.1 localhost\n# consul-ecs upstreams: begin\n127.65.0.1 api\n"+
		"# consul-ecs upstreams: end\n")
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds\n%s\nwant\n%s", path, got, want)
	}
}
