package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The draft-07 meta-schema comes with the library, so that this test needs no
// network, unlike the one of 0.6.
func TestSchemaIsValidDraft07(t *testing.T) {
	t.Parallel()
	meta, err := jsonschema.NewCompiler().Compile("http://json-schema.org/draft-07/schema#")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.Validate(doc); err != nil {
		t.Error(err)
	}
	root := doc.(map[string]any)
	if root["$schema"] != "http://json-schema.org/draft-07/schema#" || root["$id"] != schemaID {
		t.Errorf("got $schema %v and $id %v", root["$schema"], root["$id"])
	}
}

// Every field of the Go types is in the schema under its exact name, has a
// description, and the other way round.
func TestSchemaAndTypesAgree(t *testing.T) {
	t.Parallel()
	for _, g := range generations() {
		agree(t, g+" $", g, oracle(t, g), reflect.TypeFor[Config]())
	}
}

func agree(t *testing.T, path string, g string, s *jsonschema.Schema, typ reflect.Type) {
	s = deref(s)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if s.Description == "" {
		t.Errorf("%s: no description", path)
	}
	switch typ.Kind() {
	case reflect.Slice:
		if items := deref(s.Items.(*jsonschema.Schema)); len(items.Properties) > 0 {
			agree(t, path+"[]", g, items, typ.Elem())
		}
	case reflect.Struct:
		var tags []string
		for f := range typ.Fields() {
			name := f.Tag.Get("json")
			if name == "-" || readRule(f.Tag.Get("check"), g).foreign {
				continue
			}
			tags = append(tags, name)
			p, ok := s.Properties[name]
			if !ok {
				t.Errorf("%s.%s: in the types only", path, name)
				continue
			}
			agree(t, path+"."+name, g, p, f.Type)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if !slices.Contains(tags, name) {
				t.Errorf("%s.%s: in the schema only", path, name)
			}
		}
	case reflect.Int:
		if s.Minimum == nil || s.Maximum == nil {
			t.Errorf("%s: an integer without range", path)
		}
	}
}

func TestSchemaIsACopy(t *testing.T) {
	t.Parallel()
	clear(Schema())
	if !json.Valid(Schema()) {
		t.Error("a caller changed the schema")
	}
}
