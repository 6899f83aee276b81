package runtime

import (
	"fmt"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

func limitNumber(name string) (int, bool) {
	limit, err := (&units.Ulimit{Name: name}).GetRlimit()
	if err != nil {
		return 0, false
	}
	return limit.Type, true
}

// resolveLimits turns names into numbers and lowers what the host cannot
// give: hardLimit returns the highest hard limit for a resource.
func resolveLimits(wanted []Ulimit, hardLimit func(int) (uint64, error)) (limits []rlimit, warnings []string, err error) {
	for _, w := range wanted {
		resource, ok := limitNumber(w.Name)
		if !ok {
			return nil, nil, fmt.Errorf("ulimit %q is unknown", w.Name)
		}
		if w.Soft > w.Hard {
			return nil, nil, fmt.Errorf("ulimit %s: soft limit %d exceeds hard limit %d", w.Name, w.Soft, w.Hard)
		}
		highest, err := hardLimit(resource)
		if err != nil {
			return nil, nil, fmt.Errorf("ulimit %s: %w", w.Name, err)
		}
		l := rlimit{Resource: resource, Soft: min(w.Soft, highest), Hard: min(w.Hard, highest)}
		if l.Hard != w.Hard {
			warnings = append(warnings, fmt.Sprintf(
				"ulimit %s is %d:%d instead of %d:%d: the simulator itself has no more and lacks CAP_SYS_RESOURCE",
				w.Name, l.Soft, l.Hard, w.Soft, w.Hard))
		}
		limits = append(limits, l)
	}
	return limits, warnings, nil
}

// ownHardLimits returns the function that returns how high this process can set a
// limit: without bounds with CAP_SYS_RESOURCE, which counts outside of
// user namespaces only, else its own hard limit.
func ownHardLimits(ids host.IDs) (func(resource int) (uint64, error), error) {
	have, err := host.Effective()
	if err != nil {
		return nil, err
	}
	if ids.Initial && len(host.MissingCaps(have, host.SysResource())) == 0 {
		return func(int) (uint64, error) { return unix.RLIM_INFINITY, nil }, nil
	}
	return func(resource int) (uint64, error) {
		var l unix.Rlimit
		err := unix.Getrlimit(resource, &l)
		return l.Max, err
	}, nil
}

// LowerLimits lowers limits to this process's own hard ones. lowered names them.
func LowerLimits(wanted []Ulimit) (limits []Ulimit, lowered []string) {
	for _, w := range wanted {
		var own unix.Rlimit
		resource, ok := limitNumber(w.Name)
		if !ok || unix.Getrlimit(resource, &own) != nil || own.Max >= w.Hard {
			limits = append(limits, w)
			continue
		}
		limits = append(limits, Ulimit{Name: w.Name, Soft: min(w.Soft, own.Max), Hard: own.Max})
		lowered = append(lowered, fmt.Sprintf("ulimit %s is %d:%d instead of %d:%d", w.Name, min(w.Soft, own.Max), own.Max, w.Soft, w.Hard))
	}
	return limits, lowered
}
