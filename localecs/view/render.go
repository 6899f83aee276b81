package view

import (
	"fmt"
	"strings"
	"time"
)

// Size is a terminal's, in cells.
type Size struct{ Width, Height int }

// Render returns the rows that show the state. No row reaches the last column, and there
// are fewer rows than the terminal has, none if it is too small.
func Render(s State, size Size, colour bool, now time.Time) []string {
	width := size.Width - 1
	// The events keep a third of the terminal.
	height := min(size.Height-1, max(3, size.Height*2/3))
	if width < 1 || height < 1 {
		return nil
	}
	foot := s.foot(width, now)
	foot = foot[:min(len(foot), height)]
	rows := append(s.body(width, height-len(foot), now), foot...)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = r.cut(width).encode(colour)
	}
	return lines
}

// foot is the step, then the traffic, then faults: a low terminal shows the step only.
func (s State) foot(width int, now time.Time) []row {
	var rows []row
	if s.Step.Text != "" {
		text := clean(s.Step.Text)
		if s.Step.Number > 0 {
			text = fmt.Sprintf("step %d of %d: %s", s.Step.Number, s.Step.Count, text)
		}
		rows = append(rows, ending(row{{text, plain}}, row{{clean(s.Step.soFar()) + ", " + s.Step.Took(now), plain}}, width))
	}
	if t := s.Traffic; t != nil {
		failed := span{fmt.Sprintf("%d failed", t.Failed), plain}
		if t.Failed > 0 {
			failed.style = bad
		}
		to := " to " + clean(t.URL)
		if t.Rate > 0 {
			to = fmt.Sprintf("; %d a second", t.Rate) + to
		}
		rows = append(rows, row{
			{fmt.Sprintf("requests: %d answered, ", t.Answered), plain}, failed,
			{", slowest " + milliseconds(t.Slowest) + to, plain},
		})
	}
	for i, f := range s.Faults {
		if i == maxFaults && len(s.Faults) > maxFaults+1 {
			rows = append(rows, row{{fmt.Sprintf("and %d more faults", len(s.Faults)-i), bad}})
			break
		}
		rows = append(rows, row{{"fault: ", plain}, {clean(f.String()), bad}})
	}
	return rows
}

// maxFaults is how many faults have their own row; one more has, too, if it is the last.
const maxFaults = 4

// body is a rule with the scenario's name, then the tasks.
func (s State) body(width, height int, now time.Time) []row {
	var rows []row
	if height > min(len(s.Tasks), 2) {
		title := fmt.Sprintf("── %s, %s ", clean(s.Scenario), seconds(now.Sub(s.Begun)))
		rows = append(rows, row{{title, quiet}, {strings.Repeat("─", max(0, width-row{{title, quiet}}.width())), quiet}})
	}
	return append(rows, s.tasks(width, height-len(rows), now)...)
}

// tasks draws the tasks in the first layout that fits: each in one row, each with its
// containers below it, and each in a row that sums its containers up.
func (s State) tasks(width, height int, now time.Time) []row {
	shown := fold(s.Tasks, height)
	c := columnsOf(s.Tasks, width, now)
	if len(shown) == len(s.Tasks) {
		if rows, fits := c.each(shown, now, c.inOneRow(width)); fits {
			return rows
		}
		if rows, _ := c.each(shown, now, c.withContainersBelow(width)); len(rows) <= height {
			return rows
		}
	}
	rows, _ := c.each(shown, now, summed)
	if n := len(s.Tasks) - len(shown); n > 0 && height > 0 {
		rows = append(rows, row{{fmt.Sprintf("… and %d more tasks", n), quiet}})
	}
	return rows
}

// fold leaves out tasks until there is room for the rest and a row about them:
// stopped ones first, then the latest.
func fold(tasks []Task, height int) []Task {
	over := len(tasks) - height
	if over <= 0 {
		return tasks
	}
	over = min(over+1, len(tasks))
	var shown []Task
	for _, t := range tasks {
		if t.stopped() && over > 0 {
			over--
			continue
		}
		shown = append(shown, t)
	}
	return shown[:len(shown)-over]
}
