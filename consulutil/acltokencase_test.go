package consulutil

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// tokenCase is a token with everything it has, as data: so that a mismatch can be
// made smaller. In names, % stands for a new salt for each run, since a
// server may remember what it made of equal texts before.
type tokenCase struct {
	Policies  []text
	Roles     []role
	Direct    []int // indexes of Policies
	Identity  identities
	Login     bool // the token comes from a login, by binding rules
	Rules     []binding
	Claims    map[string]string
	Groups    []string
	Questions []aclrules.Query
}

type text struct {
	Lines       []string
	JSON        bool
	Datacenters []string
}

type role struct {
	Policies []int
	Identity identities
}

type identities struct {
	Services  []service
	Nodes     [][2]string // name, datacenter
	Templates []template
}

type service struct {
	Name        string
	Datacenters []string
}

type template struct {
	Template, Name string
	Datacenters    []string
}

type binding struct{ Selector, Type, Name, Variable string }

// dice makes random tokenCases.
type dice struct{ *rand.Rand }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func (d dice) name() string {
	return pick(d, "%a", "%ab", "%abc", "%a-b", "%b", "%a/", "%a/b", "%")
}

func (d dice) datacenters() []string {
	return pick(d, nil, nil, nil, []string{"dc1"}, []string{"dc2"}, []string{"dc2", "dc1"})
}

func (d dice) level(key bool) string {
	if key && d.IntN(4) == 0 {
		return "list"
	}
	return pick(d, "deny", "read", "write", "deny", "read", "write", "write", "Write", "DENY", "READ")
}

func (d dice) line() string {
	if d.IntN(6) == 0 {
		return fmt.Sprintf("%s = %q", pick(d, aclrules.Scalars()...), d.level(false))
	}
	r := aclrules.Rule{Resource: pick(d,
		append(aclrules.Segmented(), aclrules.Service, aclrules.Key, aclrules.Service)...), Prefix: d.IntN(2) == 0,
		Segment: d.name()}
	if r.Prefix && d.IntN(5) == 0 {
		r.Segment = ""
	}
	r.Level = d.level(r.Resource == aclrules.Key)
	if r.Resource == aclrules.Service && d.IntN(3) == 0 {
		r.Intentions = d.level(false)
	}
	line := r.HCL()
	if d.IntN(12) == 0 {
		line = strings.ToUpper(string(r.Resource)) + strings.TrimPrefix(line, string(r.Resource))
	}
	return line
}

func (d dice) text() text {
	t := text{JSON: d.IntN(6) == 0, Datacenters: pick(d, nil, nil, nil, nil, []string{"dc1"}, []string{"dc2"})}
	for range d.IntN(8) {
		t.Lines = append(t.Lines, d.line())
	}
	return t
}

func (d dice) identities(local bool) identities {
	var all identities
	for range d.IntN(3) {
		s := service{Name: pick(d, "%a", "%ab", "%web"), Datacenters: d.datacenters()}
		if local {
			s.Datacenters = nil
		}
		all.Services = append(all.Services, s)
	}
	if d.IntN(3) == 0 {
		all.Nodes = append(all.Nodes, [2]string{pick(d, "%a", "%n"), pick(d, "dc1", "dc1", "dc2")})
	}
	if d.IntN(3) == 0 {
		t := template{Template: pick(d, aclrules.ServiceTemplate, aclrules.NodeTemplate, aclrules.DNSTemplate,
			aclrules.APIGatewayTemplate), Datacenters: d.datacenters()}
		if t.Template != aclrules.DNSTemplate {
			t.Name = pick(d, "%a", "%gw")
		}
		if local {
			t.Datacenters = nil
		}
		all.Templates = append(all.Templates, t)
	}
	return all
}

func (d dice) tokenCase(questions int) tokenCase {
	var s tokenCase
	for range 1 + d.IntN(4) {
		s.Policies = append(s.Policies, d.text())
	}
	for i := range s.Policies {
		if d.IntN(3) > 0 {
			s.Direct = append(s.Direct, i)
		}
	}
	for range d.IntN(3) {
		r := role{Identity: d.identities(false)}
		for i := range s.Policies {
			if d.IntN(2) == 0 {
				r.Policies = append(r.Policies, i)
			}
		}
		s.Roles = append(s.Roles, r)
	}
	if s.Login = d.IntN(5) == 0; s.Login {
		d.login(&s)
	} else {
		s.Identity = d.identities(false)
	}
	for range questions {
		s.Questions = append(s.Questions, d.question())
	}
	return s
}

// login makes binding rules whose names all are valid.
func (d dice) login(s *tokenCase) {
	s.Direct = nil
	s.Claims = map[string]string{"team": pick(d, "%Web", "%ab"), "env": pick(d, "prod", "")}
	if d.IntN(3) == 0 {
		delete(s.Claims, "env")
	}
	s.Groups = pick(d, nil, []string{"admin"}, []string{"users", "ops"})
	for range 1 + d.IntN(4) {
		b := binding{Selector: pick(d, "", "", `"admin" in list.groups`, `value.env == "prod"`,
			`value.env != "prod" and "ops" in list.groups`, `value.env == ""`, `value.nope == "x"`, `value.nope != "x"`,
			`"x" not in list.nope`, `value.env matches "^pr"`, `value.nope matches "x"`,
			`value.env not matches "^pr"`, `list.groups is empty`)}
		b.Type = pick(d, "service", "node", "templated-policy", "role", "policy")
		switch b.Type {
		case "service", "node":
			b.Name = pick(d, "%a", "${value.team}", "${value.team}-x")
		case "templated-policy":
			b.Name, b.Variable = pick(d, aclrules.APIGatewayTemplate, aclrules.ServiceTemplate),
				pick(d, "%a", "${value.team}", "%a-${value.env}", "${value.env}")
		case "role":
			b.Name = fmt.Sprintf("%%role-%d", d.IntN(3)) + pick(d, "", "", "${value.env}") // may be missing
		case "policy":
			b.Name = fmt.Sprintf("%%policy-%d", d.IntN(5))
		}
		s.Rules = append(s.Rules, b)
	}
}

func (d dice) question() aclrules.Query {
	q := aclrules.Query{
		Resource: pick(d,
			slices.Concat(aclrules.Scalars(), aclrules.Segmented(), aclrules.Segmented(),
				[]aclrules.Resource{aclrules.Intention, aclrules.Intention, aclrules.Key})...),
		Access: pick(d, aclrules.ReadAccess, aclrules.WriteAccess),
	}
	if !q.Resource.IsScalar() {
		q.Segment = pick(d, d.name(), d.name(), d.name()+pick(d, "c", "-sidecar-proxy", "/", "-x"), "%web",
			"%gw", "%n", "other", "", "*")
	}
	if q.Resource == aclrules.Key {
		q.Access = pick(d, aclrules.ReadAccess, aclrules.ListAccess, aclrules.WriteAccess, aclrules.WritePrefix)
	}
	return q
}

// render returns the policy's text.
func (t text) render(salt string) string {
	if !t.JSON {
		return "# " + salt + "\n" + salted(strings.Join(t.Lines, "\n"), salt)
	}
	p, err := aclrules.Parse(salted(strings.Join(t.Lines, "\n"), salt))
	if err != nil {
		panic(err)
	}
	doc := map[string]any{"comment": salt}
	for _, r := range p {
		if r.Resource.IsScalar() {
			doc[string(r.Resource)] = r.Level
			continue
		}
		key := string(r.Resource)
		if r.Prefix {
			key += "_prefix"
		}
		body := map[string]string{"policy": r.Level}
		if r.Intentions != "" {
			body["intentions"] = r.Intentions
		}
		list, _ := doc[key].([]any)
		doc[key] = append(list, map[string]any{r.Segment: body})
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func salted(text, salt string) string { return strings.ReplaceAll(text, "%", salt) }

// smaller returns the tokenCases with one thing less.
func (s tokenCase) smaller() []tokenCase {
	var all []tokenCase
	add := func(change func(*tokenCase)) {
		var c tokenCase
		b, _ := json.Marshal(s)
		_ = json.Unmarshal(b, &c)
		change(&c)
		if changed, _ := json.Marshal(c); len(changed) < len(b) {
			all = append(all, c)
		}
	}
	for i := range s.Direct {
		add(func(c *tokenCase) { c.Direct = slices.Delete(c.Direct, i, i+1) })
	}
	for i := range s.Rules {
		add(func(c *tokenCase) { c.Rules = slices.Delete(c.Rules, i, i+1) })
	}
	for i, r := range s.Roles {
		for j := range r.Policies {
			add(func(c *tokenCase) { c.Roles[i].Policies = slices.Delete(c.Roles[i].Policies, j, j+1) })
		}
		add(func(c *tokenCase) { c.Roles[i].Identity = identities{} })
	}
	for i, p := range s.Policies {
		for j := range p.Lines {
			add(func(c *tokenCase) { c.Policies[i].Lines = slices.Delete(c.Policies[i].Lines, j, j+1) })
		}
	}
	add(func(c *tokenCase) { c.Identity = identities{} })
	return all
}
