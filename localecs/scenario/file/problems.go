package file

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/taskdef"
)

// NamesDirectory reports whether a name may become that of a directory: one path
// element, and no option or hidden file.
func NamesDirectory(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`).MatchString(name)
}

// Time may be stretched as well as shortened.
const (
	minTimeScale = 0.01
	maxTimeScale = 1000
)

// problems returns the mistakes that the syntax allows.
func (s *Scenario) problems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case s.Name == "":
		add("name: must not be empty")
	case !NamesDirectory(s.Name):
		add("name: %q: want letters, digits, _ . and -: it is the name of a directory", s.Name)
	}
	if s.StopOrder != StopReverse && s.StopOrder != StopAtOnce {
		add("stopOrder: %q: want reverse or at-once", s.StopOrder)
	}
	if len(s.Tasks)+len(s.Services) == 0 {
		add("tasks: at least one task definition is needed")
	}
	for name, task := range s.Tasks {
		if !NamesDirectory(name) {
			add("tasks: %q: want letters, digits, _ . and -: it is the name of a directory", name)
		}
		if task.Definition == "" {
			add("tasks[%q]: want the task definition's file", name)
		}
		for _, text := range checkTags(task.Tags, task.PropagateTags, "TASK_DEFINITION", "NONE") {
			add("tasks[%q].%s", name, text)
		}
	}
	s.serviceProblems(add)
	switch {
	case s.Consul.Image == "":
		add("consul: every scenario has a Consul server: want its image, one of images. Without one, task " +
			"definitions run by themselves: localecs run FILE.json")
	case s.Images[s.Consul.Image] == nil:
		add("consul.image: %q is not in images", s.Consul.Image)
	}
	return slices.Concat(errs, s.settingProblems(), chaos.Problems(s.Faults, s.faultTargets(nil)), s.stepsProblems())
}

// serviceProblems looks at services, whose tasks get generated names.
func (s *Scenario) serviceProblems(add func(string, ...any)) {
	for name, service := range s.Services {
		if !NamesDirectory(name) {
			add("services: %q: want letters, digits, _ . and -: it begins the names of directories", name)
		}
		if _, taken := s.Tasks[name]; taken {
			add("services: %q is in tasks, too", name)
		}
		for _, text := range service.Problems() {
			add("services[%q].%s", name, text)
		}
	}
	for name, task := range s.Tasks {
		if of := s.ServiceOf(name); of != "" {
			add("tasks: %q is what a task of service %q may be called", name, of)
		}
		if _, real := s.Services[task.Service]; real {
			add("tasks[%q].service: %q is in services, which start their tasks themselves", name, task.Service)
		}
	}
}

// ServiceOf returns the service of Services whose task may have this name; empty when it is not such a
// name.
func (s *Scenario) ServiceOf(task string) string {
	i := strings.LastIndex(task, "-")
	if i < 0 || !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(task[i+1:]) {
		return ""
	}
	if _, known := s.Services[task[:i]]; !known {
		return ""
	}
	return task[:i]
}

// settingProblems returns the mistakes in what every task needs.
func (s *Scenario) settingProblems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	s.behaviourProblems(add)
	s.addedProblems(add)
	for name, i := range s.Images {
		if i == nil {
			add("images[%q]: want programs", name)
			continue
		}
		for _, err := range i.Problems() {
			add("images[%q].%w", name, err)
		}
	}
	if !regexp.MustCompile(`^[0-9]{12}$`).MatchString(s.Account) {
		add("account: %q: want 12 digits", s.Account)
	}
	if !regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`).MatchString(s.Region) {
		add("region: %q: want a region such as us-east-1", s.Region)
	}
	if !taskdef.ValidName(s.Cluster) {
		add("cluster: %q: want letters, digits, _ and -, as ECS does", s.Cluster)
	}
	if _, err := netip.ParsePrefix(s.Subnet); err != nil {
		add("subnet: %q: want a CIDR block such as 10.42.0.0/24", s.Subnet)
	}
	return errs
}

// behaviourProblems checks the settings of the simulator.
func (s *Scenario) behaviourProblems(add func(string, ...any)) {
	// Not a number is in no range.
	if s.TimeScale != 0 && !(s.TimeScale >= minTimeScale && s.TimeScale <= maxTimeScale) {
		add("timeScale: %v: want %v to %v: it divides the seconds of task definitions", s.TimeScale, minTimeScale,
			maxTimeScale)
	}
	for id, name := range s.CloudMap {
		if !hostname.MatchString(name) || strings.Contains(id, "/") {
			add("cloudMap[%q]: %q: want a DNS name for the end of an ARN, such as srv-abc: api.shop.local", id,
				name)
		}
	}
	for arn, path := range s.EnvironmentFiles {
		if !strings.HasPrefix(arn, "arn:") {
			add("environmentFiles: %q: want the ARN in the task definition, such as arn:aws:s3:::bucket/web.env", arn)
		}
		if path == "" {
			add("environmentFiles[%q]: want a file", arn)
		}
	}
}
