package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// limit bounds the whole run, compiling included.
const limit = 5 * time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(3)
	}
}

// row is one line of a table.
type row struct {
	what    string
	mb      float64
	comment string
}

func run(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "consul-ecs-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "consul-ecs")
	size, err := build(ctx, program, "./cmd/consul-ecs", nil)
	if err != nil {
		return err
	}
	if err := table(w, "Size of the stripped program", []row{{"consul-ecs", size, "goal 16"}}); err != nil {
		return err
	}
	imports, err := importRows(ctx, dir, size)
	if err != nil {
		return err
	}
	if err := table(w, "What an import adds to a program that gets JSON over HTTPS", imports); err != nil {
		return err
	}
	memory, err := memoryRows(ctx, dir, program)
	if err != nil {
		return err
	}
	return table(w, "Memory (RSS: at rest after 12 s; peak: the most until exit)", memory)
}

func table(w io.Writer, title string, rows []row) error {
	fmt.Fprintf(w, "%s\n\n", title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "  %s\t%6.2f MB\t%s\n", r.what, r.mb, r.comment)
	}
	fmt.Fprintln(t)
	return t.Flush()
}
