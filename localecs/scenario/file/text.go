package file

import (
	"fmt"
	"strings"
)

// String says what the step does, in a few words and without its limit.
func (s Step) String() string {
	switch {
	case s.Start != nil:
		return "start " + strings.Join(s.Start, ", ")
	case s.Stop != nil:
		return "stop " + strings.Join(s.Stop.Tasks, ", ")
	case s.Scale != nil:
		return fmt.Sprintf("scale %s to %d", s.Scale.Service, s.Scale.Count)
	case s.Deploy != nil:
		return strings.TrimSuffix("deploy "+s.Deploy.Service+" with "+s.Deploy.Definition, " with ")
	case s.Kill != nil && s.Kill.Container == "":
		return "kill everything in " + s.Kill.Task
	case s.Kill != nil:
		return "kill " + s.Kill.Container + " in " + s.Kill.Task
	case s.Await != nil:
		return "await " + s.Await.String()
	case s.MTLS != nil:
		return fmt.Sprintf("look whether port %d of %s is %s in mTLS", s.MTLS.Port, s.MTLS.Task, s.MTLS.Service)
	case s.Get != nil:
		return fmt.Sprintf("get %s in %s", s.Get.URL, s.Get.Task)
	case s.Post != nil:
		return fmt.Sprintf("post %s in %s", s.Post.URL, s.Post.Task)
	case s.Faults != nil:
		return fmt.Sprintf("begin a schedule of %d faults", len(s.Faults))
	case s.Traffic != nil:
		return fmt.Sprintf("send %d requests a second to port %d of %s", s.Traffic.Rate, s.Traffic.Port, s.Traffic.Task)
	case s.EndTraffic != nil && s.EndTraffic.Name != "":
		return "end the traffic: " + s.EndTraffic.Name
	case s.EndTraffic != nil:
		return "end the traffic"
	case s.Pause > 0:
		return "pause " + s.Pause.String()
	}
	return "do nothing"
}

// String says what is awaited, without its limit.
func (a Await) String() string {
	switch {
	case a.Steady:
		return "service " + a.Service + " to be steady"
	case a.Service != "":
		return fmt.Sprintf("%d passing instances of %s", a.Passing, a.Service)
	case len(a.Logins) > 0:
		return "logins by " + strings.Join(a.Logins, " and ")
	case a.Stopped:
		return "task " + a.Task + " to stop by itself"
	case a.InTraffic != nil && *a.InTraffic:
		return "task " + a.Task + " to be in traffic"
	case a.InTraffic != nil:
		return "task " + a.Task + " to be out of traffic"
	case a.Tokens != nil:
		return fmt.Sprintf("%d tokens of task %s", *a.Tokens, a.Task)
	case a.Restarts > 0:
		return fmt.Sprintf("%d restarts of container %s in %s", a.Restarts, a.Container, a.Task)
	case a.Task != "":
		return fmt.Sprintf("check of container %s in %s to be %s", a.Container, a.Task, a.Status)
	case a.FaultsOver:
		return "the end of all faults"
	default:
		return fmt.Sprintf("%d answered requests", a.Requests)
	}
}

// Size says how much there is of it.
func (s *Scenario) Size() string {
	text := fmt.Sprintf("%d tasks", len(s.Tasks))
	if n := len(s.Services); n > 0 {
		text += fmt.Sprintf(" and %d services", n)
	}
	return text
}
