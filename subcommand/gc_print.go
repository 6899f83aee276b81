package subcommand

import (
	"bufio"
	"fmt"
	"io"

	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// print writes a report as text or as JSON.
func (f *gcFlags) print(inv *cli.Invocation, r *controller.Report, text func(io.Writer, *controller.Report)) error {
	if f.json {
		return writeJSON(inv.Stdout, r)
	}
	w := bufio.NewWriter(inv.Stdout)
	text(w, r)
	return w.Flush()
}

// printPlan writes what is to be deleted, task by task, each with its evidence;
// then what stays.
func printPlan(w io.Writer, r *controller.Report) {
	fmt.Fprintln(w, r.Cluster)
	byTask := map[string][]controller.Item{}
	var dead []string // in the plan's order
	for _, i := range r.Delete {
		if byTask[i.Task] == nil {
			dead = append(dead, i.Task)
		}
		byTask[i.Task] = append(byTask[i.Task], i)
	}
	for _, task := range dead {
		fmt.Fprintf(w, "%s dead: %s\n", task, byTask[task][0].Evidence)
		for _, i := range byTask[task] {
			fmt.Fprintf(w, "  %s\n", itemText(i))
		}
	}
	for _, k := range r.Kept {
		detail := ""
		if k.Detail != "" {
			detail = ", " + k.Detail
		}
		fmt.Fprintf(w, "%s stays: %s%s (%s, %s)\n", k.Task, k.Why.Text(), detail, count(k.Tokens, "token", "tokens"), count(k.Services, "service", "services"))
	}
	reservation := ""
	if r.Partial {
		reservation = ", as far as could be read"
	}
	fmt.Fprintf(w, "%d to delete of %s; %s; %s%s\n", len(r.Delete), count(len(dead), "dead task", "dead tasks"),
		count(len(r.Kept), "task stays", "tasks stay"), count(r.Running, "task runs", "tasks run"), reservation)
}

// printDone writes what became of the plan.
func printDone(w io.Writer, r *controller.Report) {
	for _, i := range r.Deleted {
		if i.Kind == controller.KindNode { // not in the plan
			fmt.Fprintf(w, "%s\n  %s\n", i.Task, itemText(i))
		}
	}
	for _, failed := range r.Failed {
		fmt.Fprintf(w, "%s failed: %s: %s\n", failed.Task, itemText(failed.Item), failed.Err)
	}
	fmt.Fprintf(w, "%d deleted, %d failed\n", len(r.Deleted), len(r.Failed))
}

func itemText(i controller.Item) string {
	switch i.Kind {
	case controller.KindService:
		return fmt.Sprintf("service %s on node %s", i.Service, i.Node)
	case controller.KindNode:
		return "node " + i.Node
	default:
		return fmt.Sprintf("token %s of %s", i.Accessor, i.Method)
	}
}

// count is a number with the word that fits it.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
