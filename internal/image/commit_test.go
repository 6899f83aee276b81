package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const testVersion = "1.2.3"

// TestCommitGivesOneImage builds one commit in two checkouts, of which one has a tag, as a shallow
// clone has none, and looks at what they built.
func TestCommitGivesOneImage(t *testing.T) {
	t.Parallel()
	target := "archive-" + runtime.GOARCH
	first, second := checkout(t, ""), checkout(t, "v"+testVersion)
	for _, dir := range []string{first, second} {
		makeTarget(t, dir, target)
	}
	dist := filepath.Join(first, "dist")
	for _, name := range []string{
		runtime.GOARCH + "/consul-ecs", "consul-ecs-" + runtime.GOARCH + ".tar",
		"consul-ecs-" + runtime.GOARCH + ".cdx.json", "image-" + runtime.GOARCH + "/rootfs.tar",
	} {
		compareFiles(t, filepath.Join(dist, name), filepath.Join(second, "dist", name))
	}
	info, err := buildinfo.ReadFile(filepath.Join(dist, runtime.GOARCH, "consul-ecs"))
	if err != nil {
		t.Fatal(err)
	}
	linked := []string{stdlib, "golang.org/x/crypto/x509roots/fallback"} // the root certificates
	for _, m := range info.Deps {
		linked = append(linked, m.Path)
	}
	t.Run("bill of materials", func(t *testing.T) {
		testBOM(t, filepath.Join(dist, "consul-ecs-"+runtime.GOARCH+".cdx.json"), linked)
	})
	t.Run("licences", func(t *testing.T) {
		testLicenses(t, filepath.Join(dist, "image-"+runtime.GOARCH, "rootfs.tar"), append(linked, info.Main.Path))
	})
	t.Run("uncommitted change", func(t *testing.T) { testUncommitted(t, first) })
}

// TestCommitGivesOneRelease does so with all files of a release.
func TestCommitGivesOneRelease(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	first, second := checkout(t, ""), checkout(t, "v"+testVersion)
	for _, dir := range []string{first, second} {
		makeTarget(t, dir, "release")
		cmd := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
		cmd.Dir = filepath.Join(dir, "dist/release")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	compareFiles(t, filepath.Join(first, "dist/release/SHA256SUMS"), filepath.Join(second, "dist/release/SHA256SUMS"))
}

// testUncommitted changes a file, after which no release can be built.
func testUncommitted(t *testing.T, dir string) {
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := makeCommand(t, dir, "release").CombinedOutput()
	if err == nil {
		t.Error("no error")
	}
	if !strings.Contains(string(out), "a release is of a commit") {
		t.Errorf("output %s", out)
	}
}

// checkout returns a directory with the files of this tree in one commit, always the same.
func checkout(t *testing.T, tag string) string {
	t.Helper()
	dir := testkit.CopyTree(t)
	commands := [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "One"}}
	if tag != "" {
		commands = append(commands, []string{"tag", tag})
	}
	for _, args := range commands {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(),
			"GIT_AUTHOR_NAME=one", "GIT_AUTHOR_EMAIL=one@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
			"GIT_COMMITTER_NAME=one", "GIT_COMMITTER_EMAIL=one@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return dir
}

func makeTarget(t *testing.T, dir, target string) {
	t.Helper()
	if out, err := makeCommand(t, dir, target).CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
}

func makeCommand(t *testing.T, dir, target string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "make", "-C", dir, target, "VERSION="+testVersion)
	cmd.Env = withoutMake(os.Environ())
	return cmd
}

// withoutMake returns the environment without what a make that runs this test has set.
func withoutMake(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		return strings.HasPrefix(pair, "MAKE") || strings.HasPrefix(pair, "MFLAGS")
	})
}

func compareFiles(t *testing.T, first, second string) {
	t.Helper()
	a, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s is another file in the second checkout", filepath.Base(first))
	}
}

// testBOM checks that the bill of materials is valid and complete.
func testBOM(t *testing.T, path string, linked []string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	validateBOM(t, data)
	var bom cdx.BOM
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	about := bom.Metadata.Component
	wantAbout := []string{"application", "consul-ecs", testVersion}
	if diff := cmp.Diff(wantAbout, []string{string(about.Type), about.Name, about.Version}); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, c := range append(*bom.Components, *about) {
		if c.BOMRef != about.BOMRef {
			got = append(got, c.Name)
		}
		if c.Hashes == nil && c.Name != stdlib {
			t.Errorf("%s has no hash", c.Name)
		}
		if c.Supplier == nil || c.Supplier.Name == "" {
			t.Errorf("%s has no supplier", c.Name)
		}
		if c.Licenses == nil {
			t.Errorf("%s has no licence", c.Name)
		}
	}
	slices.Sort(got)
	slices.Sort(linked)
	if diff := cmp.Diff(linked, got); diff != "" {
		t.Error(diff)
	}
	// All but the certificates can be reached from the program.
	edges := map[string][]string{}
	for _, d := range *bom.Dependencies {
		if d.Dependencies != nil {
			edges[d.Ref] = *d.Dependencies
		}
	}
	reached := map[string]bool{about.BOMRef: true}
	for queue := []string{about.BOMRef}; len(queue) > 0; queue = queue[1:] {
		for _, ref := range edges[queue[0]] {
			if !reached[ref] {
				reached[ref] = true
				queue = append(queue, ref)
			}
		}
	}
	for _, c := range *bom.Components {
		if !reached[c.BOMRef] && !strings.HasSuffix(c.Name, "/x509roots/fallback") {
			t.Errorf("the program does not depend on %s", c.Name)
		}
	}
}

// validateBOM compares with the schema, which is in the module whose types we use.
func validateBOM(t *testing.T, data []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	cmd.Dir = testkit.Root()
	dir, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		name = strings.Replace(name, "schemax", "schema", 1)
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name, schema); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	bom, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(bom); err != nil {
		t.Error(err)
	}
}

// testLicenses checks that each of the modules has its licence, and its address.
func testLicenses(t *testing.T, rootfs string, modules []string) {
	data, err := os.ReadFile(rootfs)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	var sources string
	walk(t, data, func(h *tar.Header, r io.Reader) {
		name, found := strings.CutPrefix(h.Name, "usr/share/licenses/consul-ecs/")
		if !found || h.Typeflag != tar.TypeReg {
			return
		}
		if name != "SOURCES" {
			files = append(files, name)
			return
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		sources = string(text)
	})
	for _, m := range modules {
		if !slices.ContainsFunc(files, func(f string) bool {
			return strings.HasPrefix(strings.ToUpper(f), strings.ToUpper(m)+"/LICENSE")
		}) {
			t.Errorf("no licence of %s", m)
		}
		if !strings.Contains(sources, "\n"+m+" ") {
			t.Errorf("no source of %s", m)
		}
	}
	for _, f := range files {
		if !slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(f, m+"/") }) {
			t.Errorf("%s is of no module that is linked", f)
		}
	}
}
