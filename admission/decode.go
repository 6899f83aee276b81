package admission

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// decode stores the definition in a value of the SDK's type. A member that has no field
// there is a finding, since the SDK would not send it.
func (t *task) decode(into any) error {
	before := len(t.findings)
	t.missing(reflect.TypeOf(into), t.doc.Task, "$")
	if len(t.findings) > before {
		return nil
	}
	if err := json.Unmarshal(t.doc.Task.JSON(), into); err != nil {
		return fmt.Errorf("decode the definition for registration: %w", err)
	}
	return nil
}

// missing reports the members that a type has no field for. Names of fields differ from
// those of members in case only.
func (t *task) missing(typ reflect.Type, n *taskdef.Node, path string) {
	switch typ.Kind() {
	case reflect.Pointer:
		t.missing(typ.Elem(), n, path)
	case reflect.Slice:
		for i, item := range n.Items() {
			t.missing(typ.Elem(), item, fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		for _, key := range n.Keys() {
			field, known := typ.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
			if !known {
				t.add(codeSDKField, path+"."+key, "key", key)
				continue
			}
			t.missing(field.Type, n.Get(key), path+"."+key)
		}
	}
}
