package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func TestTarHasDirectoriesAndOneTime(t *testing.T) {
	t.Parallel()
	o := options{created: time.Unix(1234567890, 0)}
	data, err := o.tar([]entry{
		{path: "b/c/file", mode: 0o600, owner: 7, data: []byte("text")},
		{path: "b/", mode: 0o700}, {path: "a", mode: 0o755},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	walk(t, data, func(h *tar.Header, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %04o %d:%d %d %q", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), text))
	})
	want := []string{
		`a 0755 0:0 1234567890 ""`, `b/ 0700 0:0 1234567890 ""`,
		`b/c/ 0755 0:0 1234567890 ""`, `b/c/file 0600 7:7 1234567890 "text"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunWithoutProgram(t *testing.T) {
	t.Parallel()
	dist := t.TempDir()
	if err := run(t.Context(), []string{"-dist", dist, "-version", "1.2.3", "amd64"}, io.Discard); err == nil {
		t.Error("no error")
	}
	if files, err := os.ReadDir(dist); err != nil || len(files) > 0 {
		t.Errorf("files without a program: %v (error %v)", files, err)
	}
}

// AWS's endpoints have certificates of Amazon's roots, or of Starfield's.
func TestCertificates(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{
		"Amazon Root CA 1": false, "Amazon Root CA 4": false, "Starfield Services Root Certificate Authority - G2": false,
	}
	found, constrained := 0, 0
	for rest := certificates(); ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !cert.IsCA {
			t.Fatalf("certificate %d: %v", found, err)
		}
		wanted[cert.Subject.CommonName] = true
	}
	for name, ok := range wanted {
		if !ok {
			t.Errorf("%s is not there", name)
		}
	}
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			continue
		}
		constrained++
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		if bytes.Contains(certificates(), block) {
			t.Error("a root with a constraint")
		}
	}
	if all := found + constrained; all < 100 {
		t.Errorf("%d roots", all)
	}
}

// walk visits the entries of a tar file.
func walk(t *testing.T, archive []byte, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(h, r)
	}
}
