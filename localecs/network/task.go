package network

import (
	"errors"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	// ErrGone means that the task has no network any more.
	ErrGone = errors.New("the task has ended")
	// errNoServices means that the VPC has no services outside of tasks.
	errNoServices = errors.New("there are no services to partition it from")
)

// Task is one task's link to the VPC, which can be impaired until it ends.
type Task struct {
	vpc   *vpc
	ns    *Namespace
	name  string // of the VPC's end; the task's is eth1
	index int

	mu     sync.Mutex
	closed bool
	ends   map[int]func() error
	number int
	limits []*int // in kbit/s
}

// CutFrom drops what two tasks send each other.
func (t *Task) CutFrom(other *Task) (end func() error, err error) {
	end, err = t.cut(firstOfSome, drop(by(t.name), to(other.ns.IP)), drop(by(other.name), to(t.ns.IP)))
	if err != nil {
		return nil, err
	}
	// The task that ends first removes the rule, since its address is reused.
	return other.keep(end)
}

// CutFromServices drops what the task and the VPC's services send each other.
// The VPC's gateway and resolver are not among them.
func (t *Task) CutFromServices() (end func() error, err error) {
	t.vpc.mu.Lock()
	services := t.vpc.services
	t.vpc.mu.Unlock()
	if len(services) == 0 {
		return nil, errNoServices
	}
	if err := t.vpc.lead(nowhereElse, services[0]); err != nil {
		return nil, explain(err)
	}
	rules := []*netlink.Rule{
		rule(0, unix.RT_TABLE_MAIN, by("lo"), from(t.vpc.a.Gateway), to(t.ns.IP)),
		rule(0, unix.RT_TABLE_MAIN, by("lo"), from(t.vpc.a.Resolver), to(t.ns.IP)),
		rule(0, nowhereElse, by("lo"), to(t.ns.IP)),
	}
	for _, service := range services {
		rules = append(rules, drop(by(t.name), to(service)))
	}
	return t.cut(firstOfSome, rules...)
}

// CutFromAll drops all packets from and to the task.
func (t *Task) CutFromAll() (end func() error, err error) {
	return t.cut(firstOfAll, drop(by(t.name)), rule(0, nowhere, by("lo"), to(t.ns.IP)), drop(to(t.ns.IP)))
}

func (t *Task) cut(first int, rules ...*netlink.Rule) (end func() error, err error) {
	if end, err = t.vpc.cut(first, rules); err != nil {
		return nil, err
	}
	return t.keep(end)
}

// keep registers end for Close, and returns a function that runs it at most once.
func (t *Task) keep(end func() error) (func() error, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.Join(ErrGone, end())
	}
	t.number++
	number := t.number
	once := sync.OnceValue(end)
	t.ends[number] = once
	return func() error {
		err := once()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.ends, number)
		return err
	}, nil
}

// Close ends all impairments. The link must still exist.
func (t *Task) Close() error {
	t.mu.Lock()
	t.closed = true
	ends := t.ends
	t.ends = nil
	t.mu.Unlock()
	var errs []error
	for _, end := range ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
