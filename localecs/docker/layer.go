package docker

import (
	"archive/tar"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

type layer []item

type item struct {
	header tar.Header
	// source is a file of this host; text is the content otherwise.
	source string
	text   string
}

// layers returns the image's: a base with its directories and accounts and the small
// files, and one for each large file.
func layers(i runtime.Image, binds []runtime.Bind) ([]layer, error) {
	base := tree{made: map[string]bool{"/": true}}
	dirs := []runtime.Dir{{Path: "/etc"}, {Path: "/tmp", Mode: 0o1777}, {Path: "/root", Mode: 0o700}, {Path: "/proc"}, {Path: "/sys"}, {Path: "/dev"}, {Path: "/run"}}
	for _, d := range slices.Concat(i.Volumes, dirs) {
		base.dir(d)
	}
	base.text("/etc/passwd", i.Passwd())
	base.text("/etc/group", i.Group())
	var all []layer
	for _, b := range binds {
		st, err := os.Stat(b.Source)
		switch {
		case err != nil:
			return nil, err
		case st.Size() >= Large:
			large := tree{made: map[string]bool{"/": true}}
			large.file(b.Target, b.Source, st)
			all = append(all, large.items)
		default:
			base.file(b.Target, b.Source, st)
		}
	}
	return append([]layer{base.items}, all...), nil
}

type tree struct {
	items layer
	made  map[string]bool
}

// dir makes a directory and those above it. One that is there already is as it was made first, unless it says more.
func (t *tree) dir(d runtime.Dir) {
	d.Path = path.Clean(d.Path)
	if t.made[d.Path] {
		return
	}
	t.parents(d.Path)
	mode := cmp.Or(int64(d.Mode), 0o755)
	t.made[d.Path] = true
	t.items = append(t.items, item{header: tar.Header{Typeflag: tar.TypeDir, Name: name(d.Path) + "/", Mode: mode, Uid: d.UID, Gid: d.GID}})
}

func (t *tree) parents(p string) {
	if up := path.Dir(p); !t.made[up] {
		t.dir(runtime.Dir{Path: up})
	}
}

func (t *tree) text(target, text string) {
	t.parents(target)
	t.items = append(t.items, item{header: tar.Header{Name: name(target), Mode: 0o644, Size: int64(len(text))}, text: text})
}

func (t *tree) file(target, source string, st fs.FileInfo) {
	t.parents(target)
	t.items = append(t.items, item{header: tar.Header{Name: name(target), Mode: int64(st.Mode().Perm()), Size: st.Size()}, source: source})
}

// name returns a path in the form of archives.
func name(p string) string { return strings.TrimPrefix(path.Clean(p), "/") }

func (l layer) write(w io.Writer) error {
	t := tar.NewWriter(w)
	for _, i := range l {
		err := header(t, i.header)
		switch {
		case err != nil:
		case i.source != "":
			err = copyFile(t, i.source)
		default:
			_, err = io.WriteString(t, i.text)
		}
		if err != nil {
			return err
		}
	}
	return t.Close()
}
