package controlplane

import (
	"bytes"
	"encoding/json"
)

// withoutTags is an answer whose tags are empty: its own, and those of the
// tasks, services and clusters in it, as of a resource that nobody has tagged.
func withoutTags(answer any) any {
	text, err := json.Marshal(answer)
	if err != nil {
		return answer // write says what is wrong with it
	}
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return answer
	}
	dropTags(tree)
	for _, member := range tree {
		list, several := member.([]any)
		if !several {
			list = []any{member}
		}
		for _, item := range list {
			if resource, ok := item.(map[string]any); ok {
				dropTags(resource)
			}
		}
	}
	return tree
}

func dropTags(resource map[string]any) {
	if _, has := resource["tags"]; has {
		resource["tags"] = []any{}
	}
}
