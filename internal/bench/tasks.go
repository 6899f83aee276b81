package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	fewTasks     = 10
	perTask      = 5
	startsOfFew  = 10
	floorHello   = "./internal/bench/floor/hello"
	floorReady   = "./internal/bench/floor/ready"
	helloProgram = "/hello"
	readyProgram = "/ready"
)

// tasksFigure starts ten tasks of five containers. Every second one is a chain:
// a container that ends with success, then one after the other. What remains
// beyond the same programs started without anything around them is localecs's.
func tasksFigure(s *stage) ([]row, error) {
	hello, err := s.build(s.ctx, floorHello)
	if err != nil {
		return nil, err
	}
	ready, err := s.build(s.ctx, floorReady)
	if err != nil {
		return nil, err
	}
	var wall, beyond, plain, bare sample
	for turn := range s.repeat(startsOfFew) + 1 {
		ours, err := s.startFew(hello, ready)
		if err != nil {
			return nil, err
		}
		floor, err := s.startPlainly(hello, ready, 0)
		if err != nil {
			return nil, err
		}
		namespaces, err := s.startPlainly(hello, ready, bareNamespaces)
		if err != nil {
			return nil, err
		}
		if turn == 0 {
			continue // it warms the caches
		}
		wall.add(seconds.of(ours))
		beyond.add(seconds.of(ours - floor))
		plain.add(seconds.of(floor))
		bare.add(seconds.of(namespaces))
	}
	what := fmt.Sprintf("localecs, %d tasks of %d containers: ", fewTasks, perTask)
	return []row{
		{what + "start beyond their programs", seconds, "", "5", beyond, nil},
		{what + "Run to all started", seconds, "", "", wall, []reference{
			{"the programs, plainly started", plain},
			{"each in bare namespaces", bare},
		}},
	}, nil
}

// startFew is one start of the ten tasks, until every program has said that it
// runs.
func (s *stage) startFew(hello, ready string) (time.Duration, error) {
	e, err := s.ecs(map[string]string{helloProgram: hello, readyProgram: ready}, "")
	if err != nil {
		return 0, err
	}
	defer e.Close()
	var defs []*taskdef.TaskDefinition
	for i := range fewTasks {
		defs = append(defs, fiveContainers(i%2 == 1))
	}
	start := time.Now()
	if _, err := s.up(e, defs); err != nil {
		return 0, err
	}
	at, err := s.until("every program says that it runs", time.Millisecond, startLimit, func() bool {
		for i, def := range defs {
			for _, c := range def.ContainerDefinitions {
				st, err := os.Stat(e.LogFile(taskName(i), c.Name))
				if err != nil || st.Size() == 0 {
					return false
				}
			}
		}
		return true
	})
	return at.Sub(start), err
}

// fiveContainers are side by side, or in a chain that begins with one that
// ends.
func fiveContainers(chain bool) *taskdef.TaskDefinition {
	var containers []taskdef.Container
	for i := range perTask {
		c := container(fmt.Sprint("c", i), readyProgram)
		if chain && i == 0 {
			c.EntryPoint, c.Essential = []string{helloProgram}, new(bool)
		}
		if chain && i > 0 {
			condition := taskdef.ConditionStart
			if i == 1 {
				condition = taskdef.ConditionSuccess
			}
			c.DependsOn = []taskdef.Dependency{{ContainerName: fmt.Sprint("c", i-1), Condition: condition}}
		}
		containers = append(containers, c)
	}
	return definition(containers...)
}

// bareNamespaces are those that each container has of its own.
const bareNamespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// startPlainly starts the programs of the ten tasks by fork and exec, and waits
// until each has said that it runs. With namespaces, the first of each five
// gets a network too.
func (s *stage) startPlainly(hello, ready string, namespaces uintptr) (time.Duration, error) {
	start := time.Now()
	var children []*child
	for i := range fewTasks * perTask {
		program, flags := ready, namespaces
		if i%(2*perTask) == perTask {
			program = hello
		}
		if i%perTask == 0 && namespaces != 0 {
			flags |= unix.CLONE_NEWNET
		}
		c, err := s.startIn(&syscall.SysProcAttr{Cloneflags: flags}, nil, program)
		if err != nil {
			return 0, err
		}
		children = append(children, c)
	}
	for i, c := range children {
		word := "ready"
		if i%(2*perTask) == perTask {
			word = "hello"
		}
		if _, err := c.expect(word); err != nil {
			return 0, err
		}
	}
	d := time.Since(start)
	for _, c := range children {
		c.kill()
	}
	return d, nil
}
