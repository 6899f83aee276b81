package admission

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// startPeriod is how long an application may wait for the proxy, in seconds, before its
// health check counts.
const startPeriod = 60

// allowStart gives an application's health check, which runs while the application waits for the
// proxy, the time for that. A shorter one of the user is a finding. Each branch of Fn::If counts.
func allowStart(d *document, i int, n *taskdef.Node) {
	const key = "startPeriod"
	for _, check := range alternatives(fmt.Sprintf("$.containerDefinitions[%d].healthCheck", i),
		d.get(n, "healthCheck"), nil) {
		if !isCheck(d, check.value) {
			continue
		}
		set := func(value *taskdef.Node) { d.set(check.value, key, value) }
		for _, period := range alternatives(check.path+"."+key, d.get(check.value, key), set) {
			if period.value == nil || period.value.IsNull() || isNoValue(period.value) {
				period.replace(d.node(startPeriod))
				what := fmt.Sprintf("the health check of container %s gets a startPeriod of %d s, as it may wait "+
					"for the proxy", d.containerName(i), startPeriod)
				d.report(codeDefault, check.path, "what", what, "fix",
					"set startPeriod, if the application takes longer")
				continue
			}
			if have, err := strconv.Atoi(strings.Trim(string(period.value.JSON()), `"`)); err == nil &&
				have < startPeriod {
				d.report(codeHealthStart, period.path, "container", d.containerName(i), "have", have, "need",
					startPeriod)
			}
		}
	}
}

// isCheck reports whether a value is a health check that ECS runs, as far as it is known.
func isCheck(d *document, health *taskdef.Node) bool {
	if !health.IsObject() || health.IsComputed() || d.isAbsent(health, "command") {
		return false
	}
	command := d.get(health, "command")
	words := texts(command)
	return !command.IsList() || len(words) > 0 && words[0] != "NONE"
}

// alternative is a value that a member may have at deployment.
type alternative struct {
	path  string
	value *taskdef.Node // nil for an absent member
	// replace puts another value in its place.
	replace func(*taskdef.Node)
}

// alternatives returns the values that a member may have: itself, or the branches of Fn::If.
func alternatives(path string, value *taskdef.Node, replace func(*taskdef.Node)) []alternative {
	choice := value.Get("Fn::If").Items()
	if len(choice) != 3 {
		return []alternative{{path, value, replace}}
	}
	var all []alternative
	for i := 1; i < len(choice); i++ {
		set := func(other *taskdef.Node) { choice[i] = other }
		all = append(all, alternatives(fmt.Sprintf("%s.Fn::If[%d]", path, i), choice[i], set)...)
	}
	return all
}
