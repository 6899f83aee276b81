// Package snapshot is what `acl export` writes and `-from` reads: a Consul's ACL
// objects as a file, without a secret in it, that a resolver takes instead of a
// server.
//
// Flow: 1. whoever can read a server fills a Snapshot; 2. Write makes JSON of
// it; 3. Read checks it and gives it back; 4. it answers as the server would.
//
// Owns: the file's format. Never does: I/O beyond a reader and a writer.
// Start reading at: Snapshot.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/meshtask/consul-ecs/aclrules/resolver"
)

// Version is the file's format.
const Version = 1

// Snapshot is a datacenter's ACL objects at a moment.
type Snapshot struct {
	Version int `json:"version"`
	// Datacenter answered; DefaultPolicy is allow, deny or empty.
	Datacenter    string                `json:"datacenter"`
	DefaultPolicy string                `json:"default_policy"`
	Policies      []resolver.Policy     `json:"policies"`
	Roles         []resolver.Role       `json:"roles"`
	Tokens        []resolver.Token      `json:"tokens"`
	AuthMethods   []resolver.AuthMethod `json:"auth_methods"`
	// Bindings are by auth method, Templates by name.
	Bindings  map[string][]resolver.BindingRule `json:"binding_rules"`
	Templates map[string]string                 `json:"templated_policies"`
}

// Read reads a snapshot. Unknown keys are an error: they belong to a format
// that is not this one.
func Read(r io.Reader) (*Snapshot, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var s Snapshot
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("read the export: %w", err)
	}
	if s.Version != Version {
		return nil, fmt.Errorf("read the export: version %d: want %d, as this program's acl export writes it", s.Version, Version)
	}
	return &s, nil
}

// Write writes a snapshot.
func (s *Snapshot) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// Getters are what a resolver takes.
func (s *Snapshot) Getters() resolver.Getters {
	return resolver.Getters{Policies: s, Roles: s, Tokens: s, Logins: s, Templates: s}
}

func matches(l resolver.Link, id, name string) bool {
	return l.ID != "" && l.ID == id || l.ID == "" && l.Name == name
}

func (s *Snapshot) policy(l resolver.Link) (resolver.Policy, error) {
	for _, p := range s.Policies {
		if matches(l, p.ID, p.Name) {
			return p, nil
		}
	}
	return resolver.Policy{}, resolver.ErrDangling
}

func (s *Snapshot) role(l resolver.Link) (resolver.Role, error) {
	for _, r := range s.Roles {
		if matches(l, r.ID, r.Name) {
			return r, nil
		}
	}
	return resolver.Role{}, resolver.ErrDangling
}

// Policy implements resolver.Policies.
func (s *Snapshot) Policy(_ context.Context, l resolver.Link) (resolver.Policy, error) {
	return s.policy(l)
}

// Role implements resolver.Roles.
func (s *Snapshot) Role(_ context.Context, l resolver.Link) (resolver.Role, error) { return s.role(l) }

// Token implements resolver.Tokens. Nobody's token reads a file.
func (s *Snapshot) Token(_ context.Context, accessor string) (resolver.Token, error) {
	if accessor == "" {
		return resolver.Token{}, errors.New("an export has no token of its own: name one by its accessor")
	}
	for _, t := range s.Tokens {
		if t.Accessor == accessor {
			return t, nil
		}
	}
	return resolver.Token{}, resolver.ErrNotFound
}

// AuthMethod implements resolver.Logins.
func (s *Snapshot) AuthMethod(_ context.Context, name string) (resolver.AuthMethod, error) {
	for _, m := range s.AuthMethods {
		if m.Name == name {
			return m, nil
		}
	}
	return resolver.AuthMethod{}, errors.New("there is no such auth method")
}

// BindingRules implements resolver.Logins.
func (s *Snapshot) BindingRules(_ context.Context, method string) ([]resolver.BindingRule, error) {
	return s.Bindings[method], nil
}

// Template implements resolver.Templates.
func (s *Snapshot) Template(_ context.Context, name string) (string, error) {
	text, ok := s.Templates[name]
	if !ok {
		return "", resolver.ErrDangling
	}
	return text, nil
}
