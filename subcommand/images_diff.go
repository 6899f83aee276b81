package subcommand

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// runDiff prints what differs between two locks, or between a lock and the registries.
func (o *imagesOptions) runDiff(ctx context.Context, inv *cli.Invocation, args []string) error {
	if o.out != "" {
		return exit.Usagef("-o is a flag of images lock: diff writes to standard output")
	}
	before, after, err := o.sides(ctx, inv, args)
	if err != nil {
		return err
	}
	changes := taskdef.DiffImages(before, after)
	if o.json {
		err = writeJSON(inv.Stdout, changes...)
	} else {
		err = printImageChanges(inv.Stdout, changes)
	}
	if err == nil && len(changes) > 0 {
		err = &exit.CodeError{Code: exit.CodeRefused}
	}
	return err
}

// sides returns what is compared.
func (o *imagesOptions) sides(
	ctx context.Context, inv *cli.Invocation, args []string,
) (before, after *taskdef.ImageLock, err error) {
	locks := 0
	for _, arg := range args {
		if isImageLock(arg) {
			locks++
		}
	}
	switch {
	case locks == 0:
		return o.sinceLock(ctx, inv, cmp.Or(o.lock, defaultImageLock), args)
	case o.lock != "":
		return nil, nil, exit.Usagef("-lock %s and an image lock as argument: give one of them", o.lock)
	case len(args) == 1:
		return o.sinceLock(ctx, inv, args[0], nil)
	case len(args) == 2 && locks == 2:
		if before, err = readImageLock(args[0]); err == nil {
			after, err = readImageLock(args[1])
		}
		return before, after, err
	}
	return nil, nil, exit.Usagef("want two image locks, or -lock FILE and task definitions, not both kinds")
}

// isImageLock reports whether an argument is an image lock, damaged or not, by its name or
// by its members.
func isImageLock(file string) bool {
	if strings.HasSuffix(file, ".lock.json") {
		return true
	}
	doc, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(doc, []byte(`"platforms"`)) {
		return false
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(doc, &members)
	return err == nil && members["version"] != nil && members["images"] != nil
}

// sinceLock returns the locked state and the present state of the files' images, without
// files of all that are locked.
func (o *imagesOptions) sinceLock(
	ctx context.Context, inv *cli.Invocation, file string, files []string,
) (before, after *taskdef.ImageLock, err error) {
	locked, err := readImageLock(file)
	if err != nil {
		return nil, nil, err
	}
	wanted := sortedWanted(locked)
	if len(files) > 0 {
		if wanted, err = o.wanted(inv, files); err != nil {
			return nil, nil, err
		}
	}
	if after, err = o.read(ctx, inv, wanted); err != nil {
		return nil, nil, err
	}
	before = &taskdef.ImageLock{Images: map[string]taskdef.LockedImage{}}
	for reference := range after.Images {
		if image, found := locked.Find(reference); found {
			before.Images[reference] = image
		}
	}
	return before, after, nil
}

// printImageChanges prints a line for each change.
func printImageChanges(w io.Writer, changes []taskdef.ImageChange) error {
	for _, c := range changes {
		image := c.Image
		if c.Platform != "" {
			image += " " + c.Platform
		}
		line := fmt.Sprintf("%s %s: %s -> %s", image, c.Field, imageValue(c.Before), imageValue(c.After))
		if _, err := fmt.Fprintln(w, taskdef.OneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// imageValue returns a value of a change as JSON, "none" for an absent one.
func imageValue(value any) string {
	if value == nil {
		return "none"
	}
	return string(taskdef.NewNode(value).JSON())
}
