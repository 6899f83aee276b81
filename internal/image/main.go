package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/meshtask/consul-ecs/internal/volume"
)

// options are what everything of one build has in common.
type options struct {
	dist, name, version, revision string
	defaultImage, builder         string
	created                       time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: image [flags] ARCH...: builds images of dist/ARCH/consul-ecs")
		fs.PrintDefaults()
	}
	fs.StringVar(&o.dist, "dist", "dist", "`directory` of the programs, and of what is written")
	fs.StringVar(&o.name, "name", "consul-ecs", "`name` of the image")
	fs.StringVar(&o.version, "version", "", "version of the program and the image's tag")
	fs.StringVar(&o.revision, "revision", "", "`commit`")
	fs.StringVar(&o.defaultImage, "default-image", "", "`image` that the program takes by default, for the provenance")
	fs.StringVar(&o.builder, "builder", page+"#builder", "`URI` of who builds, for the provenance")
	seconds := fs.Int64("time", 0, "time of everything, in `seconds` since 1970")
	release := fs.Bool("release", false, "write the files of a release, instead of an archive for each architecture")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.created = time.Unix(*seconds, 0).UTC()
	if *release {
		return o.release(ctx, fs.Args())
	}
	for _, arch := range fs.Args() {
		if err := o.single(ctx, arch); err != nil {
			return err
		}
	}
	return nil
}

// single writes the image of one architecture, its root file system for builders of images, and its bill of materials.
func (o *options) single(ctx context.Context, arch string) error {
	p, err := o.read(ctx, arch, "consul-ecs", certificatesPackage)
	if err != nil {
		return err
	}
	rootfs, img, err := o.container(p)
	if err != nil {
		return err
	}
	archive, err := o.archive(img, o.tag(arch), []v1.Image{img})
	if err != nil {
		return err
	}
	bom, err := o.sbom(p)
	if err != nil {
		return err
	}
	return errors.Join(
		write(filepath.Join(o.dist, "image-"+arch, "rootfs.tar"), rootfs),
		write(filepath.Join(o.dist, "consul-ecs-"+arch+".tar"), archive),
		write(filepath.Join(o.dist, "consul-ecs-"+arch+".cdx.json"), bom))
}

// read reads a program of an architecture.
func (o *options) read(ctx context.Context, arch, name string, more ...string) (program, error) {
	return readProgram(ctx, filepath.Join(o.dist, arch, name), o.version, more...)
}

// container returns the image of consul-ecs, and the root file system of which it is made.
func (o *options) container(p program) ([]byte, v1.Image, error) {
	licenses := licenseFiles("usr/share/licenses/consul-ecs/", p.modules)
	rootfs, err := o.tar(append(entries(p.data, certificates()), licenses...))
	if err != nil {
		return nil, nil, err
	}
	img, err := o.image(p.arch(), rootfs)
	return rootfs, img, err
}

func (o *options) tar(files []entry) ([]byte, error) {
	var b bytes.Buffer
	err := writeTar(&b, files, o.created)
	return b.Bytes(), err
}

// tag returns the tag of the image of one architecture; that of all is the version.
func (o *options) tag(arch string) string { return o.version + "-" + arch }

func (o *options) timestamp() string { return o.created.Format(time.RFC3339) }

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return volume.Write(path, data, 0o644, volume.KeepGroup)
}
