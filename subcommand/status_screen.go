package subcommand

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/meshtask/consul-ecs/controller"
)

// statusScreen prints statuses: all of each look, or of a -watch without a terminal the lines that have changed.
type statusScreen struct {
	out           io.Writer
	json, repaint bool
	changes       bool
	shown         map[string]bool // lines of the last look
}

func newStatusScreen(out io.Writer, watch, json bool) *statusScreen {
	return &statusScreen{out: out, json: json, repaint: watch && !json && isTerminal(out), changes: watch}
}

// show prints the statuses of a look that began at a time.
func (s *statusScreen) show(statuses []controller.ClusterStatus, at time.Time) error {
	if s.json {
		for _, status := range statuses {
			if err := writeJSON(s.out, status); err != nil {
				return err
			}
		}
		return nil
	}
	var text bytes.Buffer
	for _, status := range statuses {
		printStatus(&text, &status)
	}
	w := bufio.NewWriter(s.out)
	switch {
	case s.repaint:
		fmt.Fprintf(w, "\x1b[H\x1b[2J%s\n%s", at.Format(time.TimeOnly), text.String())
	case s.shown == nil:
		w.WriteString(text.String())
	default:
		for line := range strings.Lines(text.String()) {
			if !s.shown[unaligned(line)] {
				fmt.Fprintf(w, "%s %s", at.Format(time.TimeOnly), line)
			}
		}
	}
	if s.changes {
		s.shown = map[string]bool{}
		for line := range strings.Lines(text.String()) {
			s.shown[unaligned(line)] = true
		}
	}
	return w.Flush()
}

// unaligned returns a line without what depends on other lines.
func unaligned(line string) string { return strings.Join(strings.Fields(line), " ") }

// printStatus writes a cluster's table.
func printStatus(out io.Writer, s *controller.ClusterStatus) {
	fmt.Fprintln(out, s.Cluster)
	for _, c := range s.Controllers {
		if c.Leader != "" {
			fmt.Fprintf(out, "%s: %s leads\n", c.Command, c.Leader)
		}
	}
	for _, problem := range s.Problems {
		fmt.Fprintln(out, problem)
	}
	for _, unknown := range s.Unknown {
		fmt.Fprintln(out, unaligned(unknown))
	}
	disagree := 0
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tDESIRED\tRUNNING\tREGISTERED\tPASSING\tTOKENS\tSESSIONS\tCONSUL-ECS\tENVOY\t")
	for _, v := range s.Services {
		if len(v.Problems) > 0 {
			disagree++
		}
		fmt.Fprintln(w, strings.Join([]string{
			serviceText(&v), countText(v.Desired), countText(v.Running), strconv.Itoa(v.Registered),
			strconv.Itoa(v.Passing), countText(v.Tokens), countText(v.Sessions), versionsText(v.MeshInit),
			versionsText(v.Envoy), strings.Join(append(v.Problems, v.Remarks...), "; "),
		}, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	fmt.Fprintf(out, "%s, %s\n", count(len(s.Services), "service", "services"),
		count(disagree, "disagrees", "disagree"))
}

func serviceText(v *controller.ServiceStatus) string {
	text := v.Service
	if v.Namespace != "" {
		text = v.Namespace + "/" + text
	}
	if v.Kind != "" {
		text += " (" + v.Kind + ")"
	}
	return text
}

func countText(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// versionsText returns the versions, with numbers of instances if there are several.
func versionsText(versions map[string]int) string {
	var texts []string
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		text := version
		if len(versions) > 1 {
			text += fmt.Sprintf(" (%d)", versions[version])
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return "-"
	}
	return strings.Join(texts, ", ")
}
