package aclrules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hil"
	"github.com/hashicorp/hil/ast"
)

// Login is a login by an auth method, with what the method would find out.
type Login struct {
	Method string
	Entity Entity
}

// Entity is the identity that logs in: an IAM role or user for aws-iam, Claims for jwt and
// oidc by their names in selectors, each with one value or, for lists, many.
type Entity struct {
	Name, ID, Account, Path string
	Tags                    map[string]string
	Claims                  map[string][]string
}

// iamFields and claimFields are what selectors speak of.
type iamFields struct {
	Name    string            `bexpr:"entity_name"`
	ID      string            `bexpr:"entity_id"`
	Account string            `bexpr:"account_id"`
	Path    string            `bexpr:"entity_path"`
	Tags    map[string]string `bexpr:"entity_tags"`
}

type claimFields struct {
	Values map[string]string   `bexpr:"value"`
	Lists  map[string][]string `bexpr:"list"`
}

// identity returns what the method finds out: fields for selectors, and variables for names.
func (m AuthMethod) identity(e Entity) (fields any, vars map[string]string, err error) {
	switch m.Type {
	case "aws-iam":
		if len(e.Claims) > 0 {
			return nil, nil, errors.New("type aws-iam: it reads an entity of IAM, and no claims or groups")
		}
		f := &iamFields{Name: e.Name, ID: e.ID, Account: e.Account}
		vars := map[string]string{"entity_name": e.Name, "entity_id": e.ID, "account_id": e.Account}
		if m.EntityDetails {
			f.Path, f.Tags = e.Path, map[string]string{}
			vars["entity_path"] = e.Path
			for _, tag := range m.EntityTags {
				f.Tags[tag] = e.Tags[tag]
				vars["entity_tags."+tag] = e.Tags[tag]
			}
		}
		return f, vars, nil
	case "jwt", "oidc":
		if e.Name+e.ID+e.Account+e.Path != "" || len(e.Tags) > 0 {
			return nil, nil, fmt.Errorf("type %s: it reads claims, and no entity of IAM", m.Type)
		}
		return m.claims(e)
	}
	return nil, nil, fmt.Errorf("type %s: want an auth method of type aws-iam, jwt or oidc", m.Type)
}

// claims returns those that the method reads. One that is absent is an empty variable, but no field, as on
// the server.
func (m AuthMethod) claims(e Entity) (fields any, vars map[string]string, err error) {
	f := &claimFields{Values: map[string]string{}, Lists: map[string][]string{}}
	vars = map[string]string{}
	for _, name := range m.Values {
		vars["value."+name] = ""
	}
	for _, name := range slices.Sorted(maps.Keys(e.Claims)) {
		values := e.Claims[name]
		switch {
		case slices.Contains(m.Lists, name):
			f.Lists[name] = values
		case !slices.Contains(m.Values, name):
			return nil, nil, fmt.Errorf("it reads no claim as %q, but as values %q, as lists %q", name, m.Values,
				m.Lists)
		case len(values) != 1:
			return nil, nil, fmt.Errorf("it reads one value as %q, not %q", name, values)
		default:
			f.Values[name], vars["value."+name] = values[0], values[0]
		}
	}
	return f, vars, nil
}

// login visits what the binding rules of a method would grant.
func (w *walk) login(ctx context.Context, l Login) {
	source := Source{}.step("login by auth method %q", l.Method)
	method, rules, err := w.Objects.AuthMethod(ctx, l.Method)
	if err != nil {
		w.fail(source, err)
		return
	}
	fields, vars, err := method.identity(l.Entity)
	if err != nil {
		w.fail(source, err)
		return
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(b BindingRule) bool { return !matches(b.Selector, fields) })
	if len(rules) == 0 {
		w.fail(source, errNoMatch)
		return
	}
	all := make([]Grants, len(rules))
	refused := false
	for i, b := range rules {
		all[i], err = b.grants(vars, w.Datacenter)
		if err != nil {
			w.fail(source.step("binding rule %s", short(b.ID)), err)
		}
		refused = refused || errors.Is(err, ErrRefused)
	}
	if refused {
		return
	}
	w.bound = false
	for i, b := range rules {
		w.grants(ctx, source.step("binding rule %s", short(b.ID)), all[i])
	}
	if !w.bound {
		w.fail(source, errNothing)
	}
}

// maxName is the longest name of an identity, role or policy, in bytes.
const maxName = 256

// isIdentityName: lower-case letters, digits, - and _, the last two not at an
// end.
func isIdentityName(s string) bool {
	return s != "" && len(s) <= maxName && consists(s, "-_") && s == strings.ToLower(s) && s == strings.Trim(s, "-_")
}

// isObjectName: letters, digits, - and _. A policy's name may have a slash, but a login that would
// get such a policy is refused, although the binding rule was not.
func isObjectName(s string) bool { return s != "" && len(s) <= maxName && consists(s, "-_") }

// isVariable reports whether a templated policy takes a name.
func isVariable(template, name string) bool {
	switch template {
	case ServiceTemplate, NodeTemplate:
		return isIdentityName(name)
	case APIGatewayTemplate:
		return name != ""
	}
	return true
}

// consists reports whether a text has ASCII letters, digits and the others only.
func consists(s, others string) bool {
	for _, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune(others, c) {
			return false
		}
	}
	return true
}

// grants returns what a matching rule gives. A role or policy that does not exist is ignored by the server;
// here it is a dangling link.
func (b BindingRule) grants(vars map[string]string, datacenter string) (Grants, error) {
	name, err := interpolate(b.BindName, vars)
	if err != nil {
		return Grants{}, fmt.Errorf("bind name %q: %w: %w", b.BindName, err, errBadName)
	}
	valid := isObjectName(name)
	var g Grants
	switch b.BindType {
	case "service":
		valid = isIdentityName(name)
		g.ServiceIdentities = []ServiceIdentity{{Name: name}}
	case "node":
		valid = isIdentityName(name)
		g.NodeIdentities = []NodeIdentity{{Name: name, Datacenter: datacenter}}
	case "role":
		g.Roles = []Link{{Name: name}}
	case "policy":
		g.Policies = []Link{{Name: name}}
	case "templated-policy":
		variable, err := interpolate(b.Variable, vars)
		if err != nil {
			return Grants{}, fmt.Errorf("variable %q: %w: %w", b.Variable, err, errBadName)
		}
		// The template's name is taken as it is.
		valid, name = isVariable(b.BindName, variable), variable
		g.TemplatedPolicies = []TemplatedPolicy{{Template: b.BindName, Name: variable}}
	default:
		return Grants{}, fmt.Errorf("unknown bind type %q", b.BindType)
	}
	if !valid {
		return Grants{}, fmt.Errorf("bind name %q becomes %q, which is not a valid name: %w",
			cmp.Or(b.Variable, b.BindName), name, errBadName)
	}
	return g, nil
}

// interpolate puts variables, in lower case, into a name.
func interpolate(text string, vars map[string]string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	if len(text) > maxText {
		return "", fmt.Errorf("it has %d bytes: want at most %d", len(text), maxText)
	}
	tree, err := hil.Parse(text)
	if err != nil {
		return "", err
	}
	scope := &ast.BasicScope{VarMap: map[string]ast.Variable{}}
	for name, value := range vars {
		scope.VarMap[name] = ast.Variable{Type: ast.TypeString, Value: strings.ToLower(value)}
	}
	result, err := hil.Eval(tree, &hil.EvalConfig{GlobalScope: scope})
	if err != nil {
		return "", err
	}
	name, ok := result.Value.(string)
	if !ok {
		return "", fmt.Errorf("it evaluates to a %s, not a string", result.Type)
	}
	return name, nil
}
