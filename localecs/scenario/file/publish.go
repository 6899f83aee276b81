package file

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Published is a TCP port of this machine that leads to a task, or in turn to the tasks of a service.
type Published struct {
	// Address is a loopback address and port of this machine.
	Address netip.AddrPort
	// Name is the task's or the service's, Port that of its container.
	Name string
	Port uint16
}

// String returns it as ParsePublished reads it.
func (p Published) String() string { return fmt.Sprintf("%s:%s:%d", p.Address, p.Name, p.Port) }

// ParsePublished reads [ADDRESS:]PORT:NAME:PORT, such as 8080:web:80.
func ParsePublished(text string) (Published, error) {
	rest, port, _ := cutLast(text)
	listen, name, _ := cutLast(rest)
	if !strings.Contains(listen, ":") {
		listen = "127.0.0.1:" + listen
	}
	address, err := netip.ParseAddrPort(listen)
	to, portErr := strconv.ParseUint(port, 10, 16)
	if errors.Join(err, portErr) != nil || name == "" || to == 0 || address.Port() == 0 {
		return Published{}, fmt.Errorf("%q: want [ADDRESS:]PORT:NAME:PORT, such as 8080:web:80 for port 80 of the "+
			"task or service web", text)
	}
	if !address.Addr().IsLoopback() {
		return Published{}, fmt.Errorf("%q: want a loopback address: who reaches the port reaches the task", text)
	}
	return Published{Address: address, Name: name, Port: uint16(to)}, nil
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndex(text, ":")
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// PublishedPorts returns the ports of Publish. The error has all mistakes in them.
func (s *Scenario) PublishedPorts() ([]Published, error) {
	var all []Published
	var errs []error
	taken := map[netip.AddrPort]string{}
	for i, text := range s.Publish {
		p, err := ParsePublished(text)
		_, task := s.Tasks[p.Name]
		_, service := s.Services[p.Name]
		switch {
		case err != nil:
		case !task && !service:
			err = fmt.Errorf("%q: no task or service is called %q; known: %s", text, p.Name, strings.Join(slices.Sorted(
				maps.Keys(s.names())), ", "))
		case taken[p.Address] != "":
			err = fmt.Errorf("%q: %s leads to %s already", text, p.Address, taken[p.Address])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("publish[%d]: %w", i, err))
			continue
		}
		taken[p.Address] = p.Name
		all = append(all, p)
	}
	return all, errors.Join(errs...)
}

// names returns the names of tasks and services.
func (s *Scenario) names() map[string]bool {
	names := map[string]bool{}
	for name := range s.Tasks {
		names[name] = true
	}
	for name := range s.Services {
		names[name] = true
	}
	return names
}
