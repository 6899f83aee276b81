package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Codes of findings about the operator's token.
const (
	codeLeak  = "ADM-LEAK"
	codeToken = "ADM-TOKEN"
)

// tokenCodes returns the rules about the operator's token, sorted by code.
func tokenCodes() []Code {
	return []Code{
		{codeLeak, taskdef.Error, "the operator's token is here ({form})",
			"remove it: everyone with ecs:DescribeTaskDefinition reads it"},
		{codeToken, taskdef.Warn, "removed {what}, whose value is the operator's token", "remove it from the input"},
	}
}

// strip removes a token from where it may have been put by mistake: variables of
// containers, and members of the mesh file's configuration. Wherever else it is, scan
// finds it.
func (t *task) strip(token secret.Value) {
	if token.Empty() {
		return
	}
	for _, path := range stripVariables(t.doc, token) {
		t.doc.reportAt(codeToken, path, "what", "the variable")
	}
	t.doc.refresh()
	if t.mesh.configuration == nil {
		return
	}
	configuration := taskdef.NewNode(t.mesh.configuration) // others have it, too
	for _, key := range stripMembers(configuration, token) {
		t.doc.reportAt(codeToken, "$", "what", "the member "+key+" of the mesh file")
	}
	t.mesh.configuration = configuration
}

// stripVariables returns the paths of the variables that it removed.
func stripVariables(d *document, token secret.Value) []string {
	var paths []string
	for i, c := range d.Task.Get(d.Key("containerDefinitions")).Items() {
		variables := c.Get(d.Key("environment"))
		if !variables.IsList() {
			continue
		}
		items, j := variables.Items(), -1
		rest := slices.DeleteFunc(slices.Clone(items), func(n *taskdef.Node) bool {
			j++
			value, _ := n.Get(d.Key("value")).Text()
			if !token.Equal(secret.New(value)) {
				return false
			}
			paths = append(paths, d.Locate(fmt.Sprintf("$.containerDefinitions[%d].environment[%d]", i, j)))
			return true
		})
		if len(rest) < len(items) {
			variables.SetItems(rest)
		}
	}
	return paths
}

// stripMembers removes the members of objects that are the token, and returns their keys.
func stripMembers(n *taskdef.Node, token secret.Value) []string {
	var removed []string
	for _, item := range n.Items() {
		removed = append(removed, stripMembers(item, token)...)
	}
	for _, key := range n.Keys() {
		member := n.Get(key)
		if text, is := member.Text(); is && token.Equal(secret.New(text)) {
			n.Delete(key)
			removed = append(removed, key)
			continue
		}
		removed = append(removed, stripMembers(member, token)...)
	}
	return removed
}

// scan looks for the token in the whole definition, and takes it out of the findings.
func (t *task) scan(token secret.Value) {
	if token.Empty() {
		return
	}
	leaks := secret.NewLeaks(token)
	if form := leaks.Find(string(t.doc.Bytes())); form != "" {
		t.doc.reportAt(codeLeak, leakPath(leaks, t.doc.Root, "$"), "form", form)
	}
	for i, f := range t.doc.findings {
		t.doc.findings[i] = Finding{f.Code, f.Severity, leaks.Redact(f.Path), leaks.Redact(f.Message),
			leaks.Redact(f.Fix)}
	}
}

// leakPath returns that of the first value below n that has the secret in it, or of n itself.
func leakPath(l *secret.Leaks, n *taskdef.Node, at string) string {
	for i, item := range n.Items() {
		if l.Find(string(item.JSON())) != "" {
			return leakPath(l, item, fmt.Sprintf("%s[%d]", at, i))
		}
	}
	for _, key := range n.Keys() {
		if l.Find(string(n.Get(key).JSON())) != "" {
			step := "." + key
			if strings.ContainsAny(key, `.[]/"`) { // such as a label
				step = fmt.Sprintf("[%q]", key)
			}
			return leakPath(l, n.Get(key), at+step)
		}
	}
	return at
}
