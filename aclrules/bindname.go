package aclrules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/hil"
	"github.com/hashicorp/hil/ast"
)

// bindName is the name in a binding rule that depends on the login, such as app-${value.team}.
type bindName struct {
	// results matches, in lower case, every name that it may become.
	results *regexp.Regexp
	// variable is the only one in it, and then the first group of results; empty otherwise.
	variable string
}

// readBindName reads a name with variables. One that cannot be read may become any name.
func readBindName(text string) bindName {
	var n bindName
	pattern := anyText
	if len(text) <= maxText {
		if tree, err := hil.Parse(text); err == nil {
			pattern = n.pattern(tree)
		}
	}
	n.results = regexp.MustCompile("(?s)^(?:" + pattern + ")$")
	if n.results.NumSubexp() != 1 {
		n.variable = ""
	}
	return n
}

// anyText matches every text.
const anyText = ".*"

// pattern returns a regular expression for all that a part of a name may become.
func (n *bindName) pattern(part ast.Node) string {
	switch part := part.(type) {
	case *ast.Output:
		var all strings.Builder
		for _, e := range part.Exprs {
			all.WriteString(n.pattern(e))
		}
		return all.String()
	case *ast.LiteralNode:
		if text, ok := part.Value.(string); ok {
			return regexp.QuoteMeta(strings.ToLower(text))
		}
	case *ast.VariableAccess:
		n.variable = part.Name
		return "(" + valuesOf(part.Name) + ")"
	case *ast.Conditional:
		return "(?:(" + n.pattern(part.TrueExpr) + ")|(" + n.pattern(part.FalseExpr) + "))"
	}
	return "(" + anyText + ")"
}

// valuesOf matches what a variable may be. AWS makes account IDs, and the path of an entity
// begins with a slash.
func valuesOf(variable string) string {
	switch variable {
	case "account_id":
		return "[0-9]*"
	case "entity_path":
		return "/.*"
	}
	return anyText
}

// reaches reports whether a login that the selector lets in may make the name that of a policy or
// role.
func (n bindName) reaches(name, selector string) bool {
	found := n.results.FindStringSubmatch(strings.ToLower(name))
	if found == nil || n.variable == "" || selector == "" || len(selector) > maxText {
		return found != nil
	}
	tree, err := bexpr.Parse("", []byte(selector), bexpr.MaxExpressions(maxSteps))
	return err != nil || !excludes(tree, strings.Split(n.variable, "."), found[1])
}

// excludes reports whether a selector requires that a field is another text than value, in any
// letter case. What else it requires is not looked at.
func excludes(tree any, field []string, value string) bool {
	switch e := tree.(type) {
	case *bexpr.BinaryExpression:
		left, right := excludes(e.Left, field, value), excludes(e.Right, field, value)
		return left && right || e.Operator == bexpr.BinaryOpAnd && (left || right)
	case *bexpr.MatchExpression:
		return e.Operator == bexpr.MatchEqual && slices.Equal(e.Selector, field) &&
			strings.ToLower(e.Value.Raw) != value
	}
	return false
}
