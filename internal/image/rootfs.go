package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// uid is the image's user and group: health-sync's in the task definitions of
// the 0.10 modules.
const uid = 5996

// certificatesPackage has the root certificates in the image.
const certificatesPackage = "golang.org/x/crypto/x509roots/fallback/bundle"

// The names of the image's two users, for users who write "user" by name. The
// home is where the user can write.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nconsul-ecs:x:5996:5996:consul-ecs:/consul:/sbin/nologin\n"
	group  = "root:x:0:\nconsul-ecs:x:5996:\n"
)

// entry is a file, or a directory when its path ends with a slash. Both belong
// to owner, as user and group.
type entry struct {
	path  string
	mode  int64
	owner int
	data  []byte
}

// entries returns everything in the image but the directories above.
//
// /consul is where volumes are mounted: the first image that mounts an empty
// volume gives it owner and mode, so with ours first, our user can write.
// There is no /tmp: every temporary file is made beside the file it becomes.
func entries(program, certs []byte) []entry {
	return []entry{
		{path: "bin/consul-ecs", mode: 0o755, data: program},
		{path: "consul/", mode: 0o755, owner: uid},
		{path: "etc/group", mode: 0o644, data: []byte(group)},
		{path: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certs},
	}
}

// writeTar writes the entries in the order of their paths, and the directories above them. All have the same age.
func writeTar(w io.Writer, entries []entry, modified time.Time) error {
	all := map[string]entry{}
	for _, e := range entries {
		all[e.path] = e
		for dir := path.Dir(strings.TrimSuffix(e.path, "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir+"/"]; !ok {
				all[dir+"/"] = entry{path: dir + "/", mode: 0o755}
			}
		}
	}
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner,
			Size: int64(len(e.data)), ModTime: modified, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return t.Close()
}

// certificates returns Mozilla's roots as PEM. A root that Mozilla trusts for older
// certificates only is left out: PEM cannot express that.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}
