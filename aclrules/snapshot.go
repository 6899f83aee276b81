package aclrules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Version is the file's format.
const Version = 1

// Snapshot is a datacenter's ACL objects at a moment.
type Snapshot struct {
	Version int `json:"version"`
	// Datacenter answered; DefaultPolicy is allow, deny or empty.
	Datacenter    string       `json:"datacenter"`
	DefaultPolicy string       `json:"default_policy"`
	Policies      []Policy     `json:"policies"`
	Roles         []Role       `json:"roles"`
	Tokens        []Token      `json:"tokens"`
	AuthMethods   []AuthMethod `json:"auth_methods"`
	// Bindings are by auth method, Templates by name.
	Bindings  map[string][]BindingRule `json:"binding_rules"`
	Templates map[string]string        `json:"templated_policies"`
}

// ReadSnapshot reads a snapshot. Unknown keys are an error: they belong to a format
// that is not this one.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var s Snapshot
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("read the export: %w", err)
	}
	if s.Version != Version {
		return nil, fmt.Errorf("read the export: version %d: want %d, as this program's acl export writes it",
			s.Version, Version)
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

// SameName reports whether two names of policies, roles, auth methods, namespaces or partitions are
// the same to Consul, which does not distinguish letter case.
func SameName(a, b string) bool { return strings.EqualFold(a, b) }

// canonicalID returns an ID as Consul makes them. A link keeps the ID that it was written with, of
// which Consul reads the hexadecimal digits only: in any letter case, between any hyphens.
func canonicalID(id string) string {
	digits := strings.ToLower(strings.ReplaceAll(id, "-", ""))
	if len(digits) != 32 {
		return strings.ToLower(id)
	}
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

func linkMatches(l Link, id, name string) bool {
	return l.ID != "" && l.ID == id || l.ID == "" && SameName(l.Name, name)
}

func (s *Snapshot) policy(l Link) (Policy, error) {
	l.ID = canonicalID(l.ID)
	for _, p := range s.Policies {
		if linkMatches(l, p.ID, p.Name) {
			return p, nil
		}
	}
	return Policy{}, ErrDangling
}

func (s *Snapshot) role(l Link) (Role, error) {
	l.ID = canonicalID(l.ID)
	for _, r := range s.Roles {
		if linkMatches(l, r.ID, r.Name) {
			return r, nil
		}
	}
	return Role{}, ErrDangling
}

// Policy implements Objects.
func (s *Snapshot) Policy(_ context.Context, l Link) (Policy, error) {
	return s.policy(l)
}

// Role implements Objects.
func (s *Snapshot) Role(_ context.Context, l Link) (Role, error) { return s.role(l) }

// Token implements Objects. No token reads a file.
func (s *Snapshot) Token(_ context.Context, accessor string) (Token, error) {
	if accessor == "" {
		return Token{}, errors.New("an export has no own token: name one by its accessor")
	}
	for _, t := range s.Tokens {
		if canonicalID(t.Accessor) == canonicalID(accessor) {
			return t, nil
		}
	}
	return Token{}, ErrNotFound
}

// AuthMethod implements Objects.
func (s *Snapshot) AuthMethod(_ context.Context, name string) (AuthMethod, []BindingRule, error) {
	for _, m := range s.AuthMethods {
		if SameName(m.Name, name) {
			return m, s.Bindings[m.Name], nil
		}
	}
	return AuthMethod{}, nil, errors.New("there is no such auth method")
}

// Template implements Objects.
func (s *Snapshot) Template(_ context.Context, name string) (string, error) {
	text, ok := s.Templates[name]
	if !ok {
		return "", ErrDangling
	}
	return text, nil
}
