package aclrules

import (
	"context"
	"fmt"
)

// memory is a Consul of plain values that writes down what is asked.
type memory struct {
	policies  map[string]Policy
	roles     map[string]Role
	tokens    map[string]Token
	methods   map[string]AuthMethod
	rules     []BindingRule
	templates map[string]string
	errors    map[string]error // by what is asked
	asked     []string
}

func (m *memory) ask(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	m.asked = append(m.asked, what)
	return m.errors[what]
}

// names reports whether a link names the object with an ID and a name.
func (l Link) names(id, name string) bool { return l.ID == id || l.ID == "" && l.Name == name }

func (m *memory) Policy(_ context.Context, l Link) (Policy, error) {
	if err := m.ask("policy %s%s", l.ID, l.Name); err != nil {
		return Policy{}, err
	}
	for _, p := range m.policies {
		if l.names(p.ID, p.Name) {
			return p, nil
		}
	}
	return Policy{}, ErrDangling
}

func (m *memory) Role(_ context.Context, l Link) (Role, error) {
	if err := m.ask("role %s%s", l.ID, l.Name); err != nil {
		return Role{}, err
	}
	for _, r := range m.roles {
		if l.names(r.ID, r.Name) {
			return r, nil
		}
	}
	return Role{}, ErrDangling
}

func (m *memory) Token(_ context.Context, accessor string) (Token, error) {
	if err := m.ask("token %s", accessor); err != nil {
		return Token{}, err
	}
	t, ok := m.tokens[accessor]
	if !ok {
		return Token{}, ErrNotFound
	}
	return t, nil
}

func (m *memory) Template(_ context.Context, name string) (string, error) {
	text, ok := m.templates[name]
	if !ok {
		return "", ErrUnreadable
	}
	return text, nil
}

func (m *memory) AuthMethod(_ context.Context, name string) (AuthMethod, []BindingRule, error) {
	if err := m.ask("method %s", name); err != nil {
		return AuthMethod{}, nil, err
	}
	if err := m.ask("rules %s", name); err != nil {
		return AuthMethod{}, nil, fmt.Errorf("list binding rules: %w", err)
	}
	return m.methods[name], m.rules, nil
}

func (m *memory) resolver() Resolver { return Resolver{Objects: m, Datacenter: "dc1", Now: now} }

// policies makes policies by name, each with one rule: read of a service of its
// name.
func policies(names ...string) map[string]Policy {
	made := map[string]Policy{}
	for _, name := range names {
		made[name] = Policy{ID: "id-" + name, Name: name, Rules: fmt.Sprintf("service %q { policy = \"read\" }", name)}
	}
	return made
}

func link(name string) Link { return Link{ID: "id-" + name, Name: name} }
