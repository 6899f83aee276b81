package subcommand

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// runLock writes the lock of all images of the files, or nothing.
func (o *imagesOptions) runLock(ctx context.Context, inv *cli.Invocation, files []string) error {
	out := cmp.Or(o.out, defaultImageLock)
	switch {
	case o.lock != "" || o.json:
		return exit.Usagef("-lock and -json are flags of images diff; lock takes -o")
	case len(files) == 0:
		return exit.Usagef("want a FILE with a task definition, or - for standard input")
	}
	for _, file := range files {
		if sameFile(file, out) {
			return exit.Usagef("-o %s would replace the task definition: name another file", out)
		}
	}
	wanted, err := o.wanted(inv, files)
	if err != nil {
		return err
	}
	lock, err := o.read(ctx, inv, wanted)
	if err != nil {
		return err
	}
	if out == "-" {
		_, err := inv.Stdout.Write(lock.Encode())
		return err
	}
	if err := cli.WriteFile(out, lock.Encode()); err != nil {
		return &exit.UsageError{Err: err}
	}
	fmt.Fprintf(inv.Stderr, "wrote %s, images: %d\n", out, len(lock.Images))
	return nil
}

// sameFile reports whether two names are of the same existing file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
