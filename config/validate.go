package config

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed schema.json
var schemaJSON string

// schemaURL is the $id of schema.json.
const schemaURL = "urn:consul-ecs:config:agent"

// Schema returns the JSON Schema (draft-07) of the document, for editors and
// other programs.
func Schema() []byte { return []byte(schemaJSON) }

// compiled is built on first use: most commands never parse a configuration.
var compiled = sync.OnceValues(compile)

func compile() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaJSON))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is ever fetched
	c.RegisterFormat(&jsonschema.Format{Name: "go-duration", Validate: checkDuration})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return s, nil
}

// checkDuration refuses what the schema's pattern cannot, numbers that
// overflow. Consul parses durations with the same function.
func checkDuration(v any) error {
	s, ok := v.(string)
	if !ok || s == "" {
		return nil
	}
	_, err := time.ParseDuration(s)
	return err
}

// validate returns every violation of the schema, unsorted.
func validate(schema *jsonschema.Schema, doc map[string]any) ([]Violation, error) {
	err := schema.Validate(doc)
	if err == nil {
		return nil, nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil, fmt.Errorf("validate: %w", err)
	}
	return flatten(invalid, schema, doc), nil
}

// flatten turns the leaves of the library's tree of errors into violations.
func flatten(e *jsonschema.ValidationError, root *jsonschema.Schema, doc any) []Violation {
	if len(e.Causes) > 0 {
		var vs []Violation
		for _, cause := range e.Causes {
			vs = append(vs, flatten(cause, root, doc)...)
		}
		return vs
	}
	path, schema, value := locate(e.InstanceLocation, root, doc)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		var vs []Violation
		for _, name := range k.Missing {
			vs = append(vs, Violation{field(path, name), "is required; must be " + allowed(schema.Properties[name])})
		}
		return vs
	case *kind.AdditionalProperties:
		var vs []Violation
		for _, name := range k.Properties {
			vs = append(vs, Violation{field(path, name), unknownField(path, name, schema)})
		}
		return vs
	case *kind.UniqueItems:
		return []Violation{{item(path, k.Duplicates[1]), fmt.Sprintf("must not repeat item %d", k.Duplicates[0])}}
	default:
		return []Violation{{path, "must be " + allowed(schema) + ", not " + got(value, schema)}}
	}
}

// locate walks schema and document to the value that a violation is about.
func locate(location []string, schema *jsonschema.Schema, value any) (string, *jsonschema.Schema, any) {
	path := "$"
	for _, step := range location {
		switch v := value.(type) {
		case []any:
			i, _ := strconv.Atoi(step)
			path, value, schema = item(path, i), v[i], schema.Items.(*jsonschema.Schema)
		case map[string]any:
			path, value, schema = field(path, step), v[step], property(schema, step)
		}
	}
	return path, schema, value
}

// property returns the schema of an object's field, nil if the schema has none.
func property(schema *jsonschema.Schema, name string) *jsonschema.Schema {
	if p, ok := schema.Properties[name]; ok {
		return p
	}
	p, _ := schema.AdditionalProperties.(*jsonschema.Schema)
	return p
}

// allowed says in words what a schema takes. Its title comes first: the schema
// has one where the keywords would be unreadable.
func allowed(s *jsonschema.Schema) string {
	types := s.Types.ToStrings()
	switch {
	case s.Title != "":
		return s.Title
	case s.Enum != nil:
		return oneOf(s.Enum.Values)
	case slices.Contains(types, "integer"):
		return fmt.Sprintf("an integer from %s to %s", s.Minimum.RatString(), s.Maximum.RatString())
	case slices.Contains(types, "boolean"):
		return "true or false"
	case slices.Contains(types, "string"):
		if s.MinLength != nil {
			return "a string that is not empty"
		}
		return "a string"
	case slices.Contains(types, "array"):
		if items, ok := s.Items.(*jsonschema.Schema); ok && slices.Contains(items.Types.ToStrings(), "string") {
			return "a list of strings"
		}
		return "a list of objects"
	default:
		if values, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			return "an object whose values are each " + allowed(values)
		}
		return "an object"
	}
}

func oneOf(values []any) string {
	var words []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			words = append(words, s)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// got shows the offending value. Only short scalars where the schema takes a
// scalar of that kind are shown themselves; the rest may hold a secret.
func got(v any, s *jsonschema.Schema) string {
	if text, ok := v.(string); ok && (s.Enum != nil || s.Pattern != nil || s.MinLength != nil) && len(text) <= 60 {
		return strconv.Quote(text)
	}
	if slices.Contains(s.Types.ToStrings(), "integer") {
		if _, ok := kindNumber(v); ok {
			return fmt.Sprint(v)
		}
	}
	return kindOf(v)
}
