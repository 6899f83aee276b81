package aclrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-bexpr"
)

// matches evaluates a selector as the server does: one that is empty matches,
// one that is wrong or fails does not.
func matches(selector string, fields any) bool {
	if selector == "" {
		return true
	}
	e, err := evaluator(selector, fields)
	if err != nil {
		return false
	}
	ok, err := e.Evaluate(fields)
	return err == nil && ok
}

const (
	// maxText bounds a selector or a name, in bytes: their parsers recurse.
	maxText = 4096
	// maxSteps bounds the work on a selector. Its parser needs ten times as much
	// for each bracket inside another; five are enough for hours.
	maxSteps = 1_000_000
)

// evaluator parses a selector for fields.
func evaluator(selector string, fields any) (*bexpr.Evaluator, error) {
	if len(selector) > maxText {
		return nil, fmt.Errorf("the selector has %d bytes: want at most %d", len(selector), maxText)
	}
	if _, err := bexpr.Parse("", []byte(selector), bexpr.MaxExpressions(maxSteps)); err != nil {
		return nil, err
	}
	return bexpr.CreateEvaluatorForType(selector, nil, fields)
}

// checkSelector returns what a selector of a method's rule does not do although
// it seems to: the server takes any.
func (m AuthMethod) checkSelector(selector string) error {
	fields, _, err := m.identity(Entity{})
	if err != nil || selector == "" {
		return err
	}
	if _, err := evaluator(selector, fields); err != nil {
		return fmt.Errorf("it never matches: %w", err)
	}
	tree, err := bexpr.Parse("", []byte(selector), bexpr.MaxExpressions(maxSteps))
	if err != nil {
		return err
	}
	var errs []error
	for _, field := range m.unread(tree) {
		errs = append(errs, fmt.Errorf("%s is not mapped by the auth method: ==, in and \"is not empty\" are always "+
			"false, their negations always true", field))
	}
	return errors.Join(errs...)
}

// unread returns the keys in a selector's tree that the method never fills.
func (m AuthMethod) unread(tree any) []string {
	switch e := tree.(type) {
	case *bexpr.UnaryExpression:
		return m.unread(e.Operand)
	case *bexpr.BinaryExpression:
		return append(m.unread(e.Left), m.unread(e.Right)...)
	case *bexpr.MatchExpression:
		filled, keyed := map[string][]string{"entity_tags": m.EntityTags, "value": m.Values,
			"list": m.Lists}[e.Selector[0]]
		if keyed && len(e.Selector) > 1 && !slices.Contains(filled, e.Selector[1]) {
			return []string{strings.Join(e.Selector, ".")}
		}
	}
	return nil
}
