package view

import (
	"slices"
)

// checks are a lane for each check of each service, in the order of their coming.
func checks(t RecordedTask, end float64) []Lane {
	var all []open
	for _, e := range t.Events {
		if e.Kind != RecordedCheck {
			continue
		}
		i := slices.IndexFunc(all, func(o open) bool { return o.Name == e.Check && o.Exit == e.Service })
		if i < 0 {
			i = len(all)
			all = append(all, open{Lane: Lane{Sort: SortCheck, Name: e.Check, Exit: e.Service, Began: e.At, Ended: Never}})
		}
		if e.Status == gone {
			all[i].leave(e.At)
			all[i].Ended = e.At
			all[i].mark(e.At, GlyphExit, "no longer in Consul")
			continue
		}
		all[i].enter(e.At, health(e.Status), false, e.Status)
	}
	lanes := closed(all, end)
	named := map[string]int{}
	for _, l := range lanes {
		named[l.Name]++
	}
	for i, l := range lanes {
		if named[l.Name] > 1 {
			lanes[i].Name += " (" + l.Exit + ")"
		}
	}
	return lanes
}

// gone is the status of a check that is no longer in Consul.
const gone = "gone"

// closed ends what is open.
func closed(all []open, end float64) []Lane {
	lanes := make([]Lane, len(all))
	for i := range all {
		all[i].leave(end)
		lanes[i] = all[i].Lane
	}
	return lanes
}

// traffic is the lane of whether Consul sends traffic to the task, if it ever did or
// has a check of it.
func traffic(t RecordedTask, end float64) (l Lane, any bool) {
	o := open{Lane: Lane{Sort: SortTraffic, Name: "in traffic", Began: Never, Ended: Never}}
	for _, e := range t.Events {
		switch {
		case e.Kind == RecordedCheck:
			any = true
		case e.Kind != RecordedInTraffic:
			continue
		case e.Status == "in":
			any = true
			if o.Began < 0 {
				o.Began = e.At
			}
			o.enter(e.At, LaneHealthy, false, "Consul sends traffic to it")
		default:
			o.leave(e.At)
			o.Ended = e.At
		}
	}
	o.leave(end)
	return o.Lane, any
}

// tokens are a lane for each login token.
func tokens(t RecordedTask, end float64) []Lane {
	var all []open
	for _, e := range t.Events {
		if e.Kind != RecordedToken {
			continue
		}
		i := slices.IndexFunc(all, func(o open) bool { return o.Exit == e.Accessor })
		if i < 0 {
			i = len(all)
			all = append(all, open{Lane: Lane{Sort: SortToken, Name: "token " + e.Method, Exit: e.Accessor, Began: e.At, Ended: Never}})
		}
		if e.Status == "login" {
			all[i].enter(e.At, LaneHeld, false, "accessor "+e.Accessor)
			continue
		}
		all[i].leave(e.At)
		all[i].Ended = e.At
		all[i].mark(e.At, GlyphExit, "logged out or removed, seen some 0.2 s late,")
	}
	return closed(all, end)
}
