package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func TestRunWritesTheSameTarAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, out := filepath.Join(dir, "binary"), filepath.Join(dir, "new", "rootfs.tar")
	if err := os.WriteFile(binary, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before []byte
	for range 2 {
		if err := run([]string{"-binary", binary, "-out", out, "-time", "1234567890"}, io.Discard); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil || before != nil && !bytes.Equal(data, before) {
			t.Fatalf("another tar (error %v)", err)
		}
		before = data
	}
	files := 0
	for r := tar.NewReader(bytes.NewReader(before)); ; files++ {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(1234567890, 0)) {
			t.Errorf("%s is of %s", h.Name, h.ModTime)
		}
		data, err := io.ReadAll(r)
		if h.Name == "bin/consul-ecs" && (err != nil || string(data) != "program" || h.Mode != 0o755) {
			t.Errorf("program %q, mode %o, error %v", data, h.Mode, err)
		}
	}
	if files != 9 {
		t.Errorf("%d files, want 9", files)
	}
}

func TestRunWithoutProgram(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := run([]string{"-binary", filepath.Join(t.TempDir(), "none"), "-out", out}, io.Discard); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a tar without a program")
	}
}

// AWS's endpoints have certificates of Amazon's roots, or of Starfield's.
func TestCertificates(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{"Amazon Root CA 1": false, "Amazon Root CA 4": false, "Starfield Services Root Certificate Authority - G2": false}
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
		if bytes.Contains(certificates(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})) {
			t.Error("a root with a constraint")
		}
	}
	if all := found + constrained; all < 100 {
		t.Errorf("%d roots", all)
	}
}
