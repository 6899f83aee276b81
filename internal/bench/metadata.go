package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	// floorAsk is the program in the tasks.
	floorAsk   = "./internal/bench/floor/ask"
	askProgram = "/ask"
	// askEvery is what the ECS agent allows a task: 40 requests a second.
	askEvery = time.Second / 40
	// askTurn is how long one server is asked before the other is.
	askTurn     = 2 * time.Second
	askPeer     = "127.0.0.1:8080"
	askRounds   = 8
	askedTasks  = 10
	crowdedHost = 50
)

// metadataFigure lets programs inside of tasks ask for /task as often as the
// ECS agent allows, and a plain server in the same task for the same bytes.
func metadataFigure(s *stage) ([]row, error) {
	ask, err := s.build(s.ctx, floorAsk)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, tasks := range []int{askedTasks, crowdedHost} {
		rounds, err := s.askTasks(ask, tasks)
		if err != nil {
			return rows, err
		}
		rows = append(rows, latencyRows(tasks, rounds)...)
	}
	return rows, nil
}

// asker is a task of a program that asks and a plain server. The program stops
// first, as it depends on the server.
func asker() *taskdef.TaskDefinition {
	app := container("app", askProgram, askPeer, askTurn.String(), askEvery.String())
	plain := container("plain", askProgram, "serve", askPeer)
	plain.Essential = new(bool)
	app.DependsOn = []taskdef.Dependency{{ContainerName: plain.Name, Condition: taskdef.ConditionStart}}
	return definition(app, plain)
}

// askTasks lets every task ask for some rounds.
func (s *stage) askTasks(ask string, tasks int) ([]asked, error) {
	e, err := s.ecs(map[string]string{askProgram: ask}, "")
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var defs []*taskdef.TaskDefinition
	for range tasks {
		defs = append(defs, asker())
	}
	if _, err := s.up(e, defs); err != nil {
		return nil, err
	}
	// The first and the last round are not whole.
	if err := s.pause(time.Duration(s.repeat(askRounds)+2) * 2 * askTurn); err != nil {
		return nil, err
	}
	if _, err := s.down(e); err != nil {
		return nil, err
	}
	rounds := map[int64]*asked{}
	for i := range defs {
		if err := readAnswers(e.LogFile(taskName(i), "app"), rounds); err != nil {
			return nil, err
		}
	}
	return whole(rounds, tasks), nil
}

// asked is one round: milliseconds of every answer, of ours and of the plain
// server.
type asked struct {
	ours, plain sample
}

// readAnswers reads what a task's asker printed into the rounds.
func readAnswers(path string, rounds map[int64]*asked) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var round int64
		var whom string
		var took time.Duration
		if _, err := fmt.Sscan(lines.Text(), &round, &whom, &took); err != nil {
			return fmt.Errorf("read answers: %q: %w", lines.Text(), err)
		}
		r := rounds[round]
		if r == nil {
			r = &asked{}
			rounds[round] = r
		}
		switch whom {
		case "ours":
			r.ours.add(milliseconds.of(took))
		case "plain":
			r.plain.add(milliseconds.of(took))
		default:
			return fmt.Errorf("read answers: %q: nobody was asked", lines.Text())
		}
	}
	return lines.Err()
}

// whole are the rounds in which every task was asked nearly all the time.
func whole(rounds map[int64]*asked, tasks int) []asked {
	want := tasks * int(askTurn/askEvery) * 9 / 10
	var out []asked
	for _, r := range rounds {
		if len(r.ours) >= want && len(r.plain) >= want {
			out = append(out, *r)
		}
	}
	return out
}

func latencyRows(tasks int, rounds []asked) []row {
	var rows []row
	for _, p := range []struct {
		name, goal string
		of         func(sample) float64
	}{
		{"p50", "", func(s sample) float64 { return s.percentile(50) }},
		{"p99", "2", func(s sample) float64 { return s.percentile(99) }},
		{"max", "", sample.max},
	} {
		var ours, plain sample
		for _, r := range rounds {
			ours.add(p.of(r.ours))
			plain.add(p.of(r.plain))
		}
		what := fmt.Sprintf("localecs, /task asked 40 times a second by %d tasks: %s", tasks, p.name)
		rows = append(rows, row{what, milliseconds, "", p.goal, ours, []reference{{"the same bytes, plain net/http", plain}}})
	}
	return rows
}
