package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// maxName is where the name of a task is cut, in cells.
const maxName = 24

// longestWord is the width of a usual state, "unhealthy". Cells are as wide as
// that, so that nothing moves when a state changes.
const longestWord = 9

// narrow is the width below which addresses are omitted.
const narrow = 60

// columns are as wide as the tasks need them.
type columns struct{ name, address, age int }

func columnsOf(tasks []Task, width int, now time.Time) columns {
	c := columns{age: len("99 s")}
	for _, t := range tasks {
		c.name = max(c.name, min(maxName, row{{clean(t.Name), plain}}.width()))
		c.age = max(c.age, len(t.age(now)))
		if width >= narrow {
			c.address = max(c.address, len("  ")+len(t.Address))
		}
	}
	return c
}

// head is the name, address, age and status of a task.
func (c columns) head(t Task, now time.Time) row {
	age := t.age(now)
	r := row{{clean(t.Name), plain}}.cut(c.name).padded(c.name)
	if c.address > 0 {
		r = append(r, span{"  " + t.Address, plain}).padded(c.name + c.address)
	}
	r = append(r, span{strings.Repeat(" ", 2+c.age-len(age)) + age + "  ", plain}, t.status())
	return r.padded(c.width())
}

func (c columns) width() int {
	return c.name + c.address + 2 + c.age + 2 + len("STOPPING")
}

// layout draws a task after its head, in rows below it too, and reports whether nothing
// had to be cut.
type layout func(head row, t Task) (rows []row, fits bool)

// each draws the tasks, of a stopped one only its end.
func (c columns) each(tasks []Task, now time.Time, draw layout) (rows []row, fit bool) {
	fit = true
	for _, t := range tasks {
		head := c.head(t, now)
		if t.stopped() {
			rows = append(rows, append(append(head, span{"  ", plain}), stopText(t.View)...))
			continue
		}
		more, fits := draw(head, t)
		rows, fit = append(rows, more...), fit && fits
	}
	return rows, fit
}

// inOneRow puts everything into one row.
func (c columns) inOneRow(width int) layout {
	return func(head row, t Task) ([]row, bool) {
		r := head
		for _, cell := range containers(t.View) {
			r = append(append(r, span{"  ", plain}), cell...)
		}
		fits := r.width()+2+len("Consul 2 passing, 2 critical") <= width
		return []row{append(append(r, span{"  ", plain}), t.Checks.row()...)}, fits
	}
}

// withContainersBelow puts the containers into as many rows as they need.
func (c columns) withContainersBelow(width int) layout {
	return func(head row, t Task) ([]row, bool) {
		rows := []row{append(append(head, span{"  ", plain}), t.Checks.row()...)}
		var r row
		for _, cell := range containers(t.View) {
			if len(r) > 0 && r.width()+2+cell.width() > width {
				rows, r = append(rows, r), nil
			}
			r = append(append(r, span{"  ", plain}), cell...)
		}
		return append(rows, r), true
	}
}

// summed names the containers that failed and counts the others. Finished containers are
// counted only if all of them are.
func summed(head row, t Task) ([]row, bool) {
	var sum row
	count := map[span]int{}
	for _, c := range t.View.Containers {
		if w := word(c); w.style == bad {
			sum = sum.and(span{short(c.Name) + " ", plain}, w)
		} else {
			count[w]++
		}
	}
	for _, w := range []span{waiting, starting, running, healthy, stopping, finished} {
		if count[w] > 0 && (w != finished || len(sum) == 0) {
			sum = sum.and(span{fmt.Sprintf("%d ", count[w]), plain}, w)
		}
	}
	if checks := t.Checks.row(); len(checks) > 0 {
		sum = sum.and(checks...)
	}
	return []row{append(append(head, span{"  ", plain}), sum...)}, true
}

// containers are cells in the order of their definition.
func containers(v scheduler.View) []row {
	var all []row
	for _, c := range v.Containers {
		name := row{{short(c.Name) + " ", plain}}
		all = append(all, append(name, word(c)).padded(name.width()+longestWord))
	}
	return all
}

// short leaves out what the names of our own containers have in common.
func short(name string) string { return clean(strings.TrimPrefix(name, "consul-ecs-")) }

// stopText is the end of a stopped task: the containers that failed, then ECS's reason,
// which also explains why others never ran.
func stopText(v scheduler.View) row {
	var r row
	for _, c := range v.Containers {
		if w := word(c); w.style == bad && w != unborn {
			r = r.and(span{short(c.Name) + " ", plain}, w)
		}
	}
	return r.and(span{clean(v.StopCode + ": " + v.StoppedReason), quiet})
}
