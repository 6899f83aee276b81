package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/internal/volume"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	fs.SetOutput(stderr)
	binary := fs.String("binary", "", "`file` that becomes /bin/consul-ecs")
	out := fs.String("out", "", "tar `file` to write")
	seconds := fs.Int64("time", 0, "modification time of everything, in `seconds` since 1970")
	if err := fs.Parse(args); err != nil {
		return err
	}
	program, err := os.ReadFile(*binary)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeTar(&b, entries(program, certificates()), time.Unix(*seconds, 0)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	return volume.Write(*out, b.Bytes(), 0o644, volume.KeepGroup)
}
