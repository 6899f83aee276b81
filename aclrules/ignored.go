package aclrules

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/hcl/ast"
)

// Ignored is a key that the server ignores silently.
type Ignored struct {
	// Line is where, from 1; 0 when unknown.
	Line int
	// Key is the key's name.
	Key string
	// Message states the problem and the remedy.
	Message string
}

// UnknownKeys finds the keys that the server does not know, in a text that Parse
// accepts.
func UnknownKeys(text string) ([]Ignored, error) {
	if text == "" {
		return nil, nil
	}
	file, _, err := decode(text)
	if err != nil {
		return nil, err
	}
	return inert(file), nil
}

func inert(file *ast.File) []Ignored {
	list, ok := file.Node.(*ast.ObjectList)
	if !ok {
		return nil
	}
	var found []Ignored
	for _, item := range list.Items {
		key := keyOf(item)
		switch l := item.Pos().Line; {
		case !isKnown(key, knownKeys()):
			found = append(found, Ignored{l, key, inertKey(key)})
		default:
			found = append(found, inertInside(item, key)...)
		}
	}
	return found
}

func keyOf(item *ast.ObjectItem) string {
	if len(item.Keys) == 0 {
		return ""
	}
	key, _ := item.Keys[0].Token.Value().(string)
	return key
}

func inertKey(key string) string {
	switch strings.ToLower(key) {
	case "identity", "identity_prefix":
		return fmt.Sprintf("%s is read and dropped: remove it", key)
	case "namespace", "namespace_prefix", "partition", "partition_prefix":
		return fmt.Sprintf("%s does nothing in Consul's community edition, and neither does what is inside", key)
	}
	return fmt.Sprintf("%s is ignored: there is no such resource%s", key, hint(key, knownKeys()))
}

// inertInside finds keys of a block that its rule does not have.
func inertInside(item *ast.ObjectItem, key string) []Ignored {
	known := []string{"policy"}
	if isKnown(key, []string{"service", "service_prefix"}) {
		known = append(known, "intentions")
	}
	body, ok := item.Val.(*ast.ObjectType)
	if !ok {
		return nil
	}
	if len(item.Keys) == 1 { // service { "web" { ... } }, and JSON
		var found []Ignored
		for _, labelled := range body.List.Items {
			if inner, ok := labelled.Val.(*ast.ObjectType); ok && len(labelled.Keys) == 1 {
				found = append(found, inertAttributes(inner, key, known)...)
			}
		}
		return found
	}
	return inertAttributes(body, key, known)
}

// inertAttributes finds keys of a rule that are not known ones.
func inertAttributes(body *ast.ObjectType, key string, known []string) []Ignored {
	var found []Ignored
	for _, attribute := range body.List.Items {
		name := keyOf(attribute)
		if isKnown(name, known) {
			continue
		}
		message := fmt.Sprintf("%s in %s is ignored%s", name, key, hint(name, known))
		if strings.EqualFold(name, "sentinel") {
			message = fmt.Sprintf("sentinel in %s does nothing in Consul's community edition", key)
		}
		found = append(found, Ignored{attribute.Pos().Line, name, message})
	}
	return found
}
