package taskdef

import (
	"cmp"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Defaults of ECS in the units of the task definition.
const (
	DefaultStopTimeout          = 30
	DefaultHealthInterval       = 30
	DefaultHealthTimeout        = 5
	DefaultHealthRetries        = 3
	DefaultRestartAttemptPeriod = 300
)

// SetDefaults fills in what registration fills in: essential, cpu, protocol,
// the host port under awsvpc, health check figures, the user of a log router, the lists that the answer
// always has, those of capabilities as soon as one is given, and cpu and memory of the task in plain numbers. It is
// idempotent; Parse has called it. What has no default at registration
// (startTimeout, stopTimeout) stays absent.
func (d *TaskDefinition) SetDefaults() {
	if n, ok := d.CPUUnits(); ok {
		d.CPU = strconv.Itoa(n)
	}
	if n, ok := d.MemoryMiB(); ok {
		d.Memory = strconv.Itoa(n)
	}
	if !Or(d.EnableFaultInjection, false) {
		d.EnableFaultInjection = nil // answers have it as false
	}
	emptyList(&d.Volumes)
	emptyList(&d.PlacementConstraints)
	for i := range d.ContainerDefinitions {
		d.ContainerDefinitions[i].setDefaults(d.NetworkMode)
	}
}

func (c *Container) setDefaults(networkMode string) {
	orElse(&c.CPU, 0)
	orElse(&c.Essential, true)
	emptyList(&c.Environment)
	emptyList(&c.MountPoints)
	emptyList(&c.VolumesFrom)
	emptyList(&c.SystemControls)
	emptyList(&c.PortMappings)
	for i := range c.PortMappings {
		p := &c.PortMappings[i]
		if p.Protocol != "udp" {
			p.Protocol = "tcp" // also in place of http and the like
		}
		if p.HostPort == nil && p.ContainerPort != nil && networkMode == "awsvpc" {
			orElse(&p.HostPort, *p.ContainerPort)
		}
	}
	if h := c.HealthCheck; h != nil {
		orElse(&h.Interval, DefaultHealthInterval)
		orElse(&h.Timeout, DefaultHealthTimeout)
		orElse(&h.Retries, DefaultHealthRetries)
	}
	if c.FirelensConfiguration != nil {
		c.User = cmp.Or(c.User, "0") // it makes a socket in a directory of root
	}
	if l := c.LinuxParameters; l != nil {
		l.Capabilities.setDefaults()
	}
	if r := c.RestartPolicy; r != nil {
		orElse(&r.RestartAttemptPeriod, DefaultRestartAttemptPeriod)
	}
}

// setDefaults completes capabilities, nil or not. Reports disagree on what ECS stores of an
// empty object.
func (c *Capabilities) setDefaults() {
	if c != nil && len(c.Add)+len(c.Drop) > 0 {
		emptyList(&c.Add)
		emptyList(&c.Drop)
	}
}

// Or returns *p, or value where p is nil: the member is absent.
func Or[T any](p *T, value T) T {
	if p == nil {
		return value
	}
	return *p
}

// orElse sets an absent value.
func orElse[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// emptyList turns an absent list into an empty one.
func emptyList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// Canonical writes a value of the definition's types, with its defaults, so that what is
// written and what ECS answers for it are the same: what is empty is left out, and what
// ECS answers in any order is sorted.
func Canonical(value any) []byte {
	n := nodeOf(reflect.ValueOf(value))
	n.prune()
	return n.JSON()
}

// prune removes members that are empty, and sorts variables, secrets and tags.
func (n *Node) prune() {
	for _, item := range n.items {
		item.prune()
	}
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		m.value.prune()
		return m.value.scalar == "" && len(m.value.members)+len(m.value.items) == 0
	})
	for _, m := range n.members {
		if by := map[string]string{"environment": "name", "secrets": "name", "tags": "key"}[m.key]; by != "" {
			name := func(item *Node) string {
				text, _ := item.Get(by).Text()
				return text
			}
			slices.SortStableFunc(m.value.items, func(a, b *Node) int { return strings.Compare(name(a), name(b)) })
		}
	}
}

// CPUUnits returns the task's cpu in units of 1/1024 vCPU; false when it is
// absent or not a number.
func (d *TaskDefinition) CPUUnits() (int, bool) { return quantity(d.CPU, "vcpu") }

// MemoryMiB returns the task's memory in MiB; false when it is absent or not a
// number.
func (d *TaskDefinition) MemoryMiB() (int, bool) { return quantity(d.Memory, "gb") }

var quantityPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{0,9}\.?\d{0,3}) ?([a-z]*)$`)
})

// quantity reads "1024", or "1 vCPU" and "2GB" where one unit is 1024.
func quantity(s, unit string) (int, bool) {
	m := quantityPattern().FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return 0, false
	}
	if m[2] == "" {
		n, err := strconv.Atoi(m[1])
		return n, err == nil && n > 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n = math.Round(n * 1024)
	return int(n), err == nil && n > 0 && m[2] == unit
}
