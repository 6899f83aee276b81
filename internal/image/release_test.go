package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const testRevision = "0123456789012345678901234567890123456789"

// fakeProgram returns a program with our module and one that it links.
func fakeProgram(name, arch string) program {
	const main = "github.com/meshtask/consul-ecs"
	text := map[string][]byte{"LICENSE": []byte("text")}
	return program{
		name: name, data: []byte(name + " for " + arch),
		info: &buildinfo.BuildInfo{
			Main: debug.Module{Path: main}, Settings: []debug.BuildSetting{{Key: "GOARCH", Value: arch}},
		},
		modules: []*module{
			{
				path: main, version: "v1.2.3", requires: map[string]bool{"example.com/Linked": true},
				licenses: map[string]bool{"Apache-2.0": true}, texts: text,
			},
			{
				path: "example.com/Linked", version: "v2.0.0+incompatible",
				sum:      "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
				licenses: map[string]bool{"MIT": true, "BSD-3-Clause": true}, texts: text,
			},
		},
	}
}

func testFiles(t *testing.T) map[string][]byte {
	t.Helper()
	o := options{
		name: "example.com/consul-ecs", version: "1.2.3", revision: testRevision,
		created: time.Unix(1234567890, 0).UTC(), builder: "https://example.com/builder",
	}
	files, err := o.releaseFiles([]program{
		fakeProgram("consul-ecs", "amd64"), fakeProgram("localecs", "amd64"),
		fakeProgram("consul-ecs", "arm64"), fakeProgram("localecs", "arm64"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestReleaseIsTheSameAgain(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(testFiles(t), testFiles(t)); diff != "" {
		t.Error(diff)
	}
}

// TestArchiveIsALayoutAndLoadable reads the archive of a release in both of its formats.
func TestArchiveIsALayoutAndLoadable(t *testing.T) {
	t.Parallel()
	data := testFiles(t)["consul-ecs-image.tar"]
	dir := t.TempDir()
	walk(t, data, func(h *tar.Header, r io.Reader) {
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			return
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	list, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 {
		t.Fatalf("%d entries, want the index", len(list.Manifests))
	}
	if got := list.Manifests[0].Annotations["io.containerd.image.name"]; got != "example.com/consul-ecs:1.2.3" {
		t.Errorf("name %q, want example.com/consul-ecs:1.2.3", got)
	}
	index, err := outer.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		tag, err := name.NewTag("example.com/consul-ecs:1.2.3-" + m.Platform.Architecture)
		if err != nil {
			t.Fatal(err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		loaded, err := tarball.Image(open, &tag)
		if err != nil {
			t.Fatal(err)
		}
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := loaded.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		if want, err := img.ConfigName(); err != nil || got != want {
			t.Errorf("docker load takes %s, want %s (error %v)", got, want, err)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	files := testFiles(t)
	var s statement
	if err := json.Unmarshal(files["consul-ecs.provenance.json"], &s); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"linux/amd64/consul-ecs": digest([]byte("consul-ecs for amd64"))["sha256"],
		"linux/arm64/localecs":   digest([]byte("localecs for arm64"))["sha256"],
	}
	for name, data := range files {
		if name != "SHA256SUMS" && name != "consul-ecs.provenance.json" {
			want[name] = digest(data)["sha256"]
		}
	}
	got := map[string]string{}
	for _, r := range s.Subject {
		got[r.Name] = r.Digest["sha256"]
	}
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("subject %s has the digest %q, want %q", name, got[name], sum)
		}
	}
	for _, suffix := range []string{"", "-amd64", "-arm64"} {
		if sum := got["example.com/consul-ecs:1.2.3"+suffix]; len(sum) != 64 {
			t.Errorf("image %q has the digest %q", suffix, sum)
		}
	}
	wantDependencies := []resource{
		{
			URI:    "git+https://github.com/meshtask/consul-ecs@" + testRevision,
			Digest: map[string]string{"gitCommit": testRevision},
		},
		{
			URI:    "pkg:golang/example.com/linked@v2.0.0%2Bincompatible",
			Digest: map[string]string{"dirHash": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
		},
	}
	if diff := cmp.Diff(wantDependencies, s.Predicate.BuildDefinition.ResolvedDependencies); diff != "" {
		t.Error(diff)
	}
	if got := s.Predicate.RunDetails.Builder.ID; got != "https://example.com/builder" {
		t.Errorf("builder %q", got)
	}
}

func TestSumsNameAllOtherFiles(t *testing.T) {
	t.Parallel()
	files := testFiles(t)
	want := map[string]string{}
	for name, data := range files {
		if name != "SHA256SUMS" {
			want[name] = digest(data)["sha256"]
		}
	}
	got := map[string]string{}
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got[name] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModulesNeedALicence(t *testing.T) {
	t.Parallel()
	mit, err := os.ReadFile("testdata/MIT")
	if err != nil {
		t.Fatal(err)
	}
	const isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is
hereby granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.`
	for _, c := range []struct {
		name, file, text string
		want             string // the expression
		err              string
	}{
		{name: "none", file: "README", text: string(mit), err: "has no file with a known licence"},
		{name: "known", file: "LICENSE", text: string(mit), want: "MIT"},
		{
			name: "other words", file: "LICENSE.txt", text: strings.Repeat("You may not distribute this. ", 100),
			err: "0 % of LICENSE.txt is a known licence",
		},
		{name: "not permitted", file: "COPYING", text: isc, err: "COPYING is of the licence ISC, which is not permitted"},
		{name: "notice only", file: "NOTICE", text: "Copyright", err: "has no file with a known licence"},
		{name: "of the package", file: "pkg/LICENSE", text: string(mit), want: "MIT"},
		{name: "of another package", file: "other/LICENSE", text: string(mit), err: "has no file with a known licence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, sub := range []string{"pkg", "other"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			p := goPackage{
				ImportPath: "example.com/m/pkg", Dir: filepath.Join(dir, "pkg"),
				Module: &goModule{Path: "example.com/m", Dir: dir},
			}
			modules, err := modulesOf([]goPackage{p})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := modules["example.com/m"].license(); got != c.want {
				t.Errorf("licence %q, want %q", got, c.want)
			}
		})
	}
}
