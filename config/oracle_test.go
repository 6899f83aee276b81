package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaID is the $id of schema.json.
const schemaID = "urn:consul-ecs:config"

// generations returns what the tests of this package go through.
func generations() []string { return []string{agent, agentless} }

// oracle returns the part of schema.json for a generation, in a complete implementation of JSON Schema.
func oracle(t testing.TB, g string) *jsonschema.Schema {
	t.Helper()
	return compile(t, schemaID+"#/definitions/"+g)
}

func compile(t testing.TB, location string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is ever fetched
	c.RegisterFormat(&jsonschema.Format{Name: "go-duration", Validate: func(v any) error {
		s, _ := v.(string)
		if s == "" {
			return nil
		}
		_, err := time.ParseDuration(s)
		return err
	}})
	if err := c.AddResource(schemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(location)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// complaints returns what the oracle has against doc: one line per value, with its path and how our message
// for it begins.
func complaints(t testing.TB, schema *jsonschema.Schema, doc any) []string {
	t.Helper()
	err := schema.Validate(doc)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	lines := leaves(invalid, doc)
	// Ours compares the items of a list only when each is right by itself.
	lines = slices.DeleteFunc(lines, func(line string) bool {
		list, repeats := strings.CutSuffix(line, "]: must not repeat")
		list = list[:strings.LastIndexByte(list, '[')+1]
		return repeats && slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, list) && strings.HasSuffix(l, ": must be")
		})
	})
	slices.Sort(lines)
	return slices.Compact(lines)
}

// deref follows references. A schema that is one has nothing else.
func deref(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

func leaves(e *jsonschema.ValidationError, doc any) []string {
	var lines []string
	for _, cause := range e.Causes {
		lines = append(lines, leaves(cause, doc)...)
	}
	if len(e.Causes) > 0 {
		return lines
	}
	path := "$"
	for _, step := range e.InstanceLocation {
		switch v := doc.(type) {
		case []any:
			i, _ := strconv.Atoi(step)
			path, doc = item(path, i), v[i]
		case map[string]any:
			path, doc = field(path, step), v[step]
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			lines = append(lines, field(path, name)+": is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			lines = append(lines, field(path, name)+": unknown field")
		}
	case *kind.UniqueItems:
		lines = append(lines, item(path, k.Duplicates[1])+": must not repeat")
	default:
		lines = append(lines, path+": must be")
	}
	return lines
}

// ours returns the same from our own decoder.
func ours(t testing.TB, g string, doc any) []string {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	_, found := decode(text, g)
	for _, v := range found.violations {
		if strings.HasPrefix(v.Message, "belongs to") {
			v.Message = "unknown field"
		}
		for _, kind := range []string{"is required", "unknown field", "must not repeat", "must be", v.Message} {
			if strings.HasPrefix(v.Message, kind) {
				lines = append(lines, v.Path+": "+kind)
				break
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func compare(t testing.TB, schema *jsonschema.Schema, g string, doc any) {
	t.Helper()
	if diff := cmp.Diff(complaints(t, schema, doc), ours(t, g, doc)); diff != "" {
		text, _ := json.Marshal(doc)
		t.Fatalf("%s: %s\n-oracle +ours:\n%s", g, text, diff)
	}
}

// A keyword beyond these needs a new rule, and corners that prove it.
func TestSchemaUsesOnlyKeywordsThatTheTypesExpress(t *testing.T) {
	t.Parallel()
	var root map[string]any
	if err := json.Unmarshal([]byte(schemaJSON), &root); err != nil {
		t.Fatal(err)
	}
	known := []string{"$schema", "$id", "description", "title", "type", "enum", "minimum", "maximum", "minLength",
		"pattern", "format", "items", "uniqueItems", "properties", "required", "additionalProperties", "$ref"}
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		for keyword, v := range s {
			if !slices.Contains(known, keyword) {
				t.Errorf("%s: keyword %q", path, keyword)
			}
			switch {
			case keyword == "format" && v != "go-duration":
				t.Errorf("%s: format %q", path, v)
			case keyword == "properties":
				for name, p := range v.(map[string]any) {
					walk(path+"."+name, p.(map[string]any))
				}
			case keyword == "$ref" && len(s) > 1:
				t.Errorf("%s: keywords beside $ref are ignored", path)
			case keyword == "items", keyword == "additionalProperties" && v != false && v != true:
				walk(path+"."+keyword, v.(map[string]any))
			case keyword == "required":
				for _, name := range v.([]any) {
					if _, ok := s["properties"].(map[string]any)[name.(string)]; !ok {
						t.Errorf("%s: required %q has no schema", path, name)
					}
				}
			}
		}
	}
	for name, s := range root["definitions"].(map[string]any) {
		walk(name+" $", s.(map[string]any))
	}
}

// corners returns values at the edges of the keywords' meaning.
func corners() []any {
	var values []any
	for _, text := range []string{`null`, `true`, `false`, `0`, `-0`, `1`, `1.0`, `10e-1`, `0.5`, `-1`, `65535`, `65536`, `6.5535e4`, `65535.0000001`,
		`2147483647`, `2147483648`, `1e300`, `1E-300`, `""`, `"a"`, `"A"`, `"ä"`, `"a-"`, `"a_b-1"`, `"\u0000"`, `"a\n"`, `"10s"`, `"+1.5h"`, `"-1s"`, `"1"`, `"+0"`,
		`"9999999999h"`, `"1µs"`, `"1m30s"`, `"http"`, `"HTTP2"`, `"DEBUG"`, `"debug"`, `"passing"`, `"service"`, `"local"`, `"mesh-gateway"`, `"api-gateway"`, `"direct"`,
		`[]`, `[null]`, `["a"]`, `["a","a"]`, `["a","b","b","a"]`, `[1,1.0]`, `[{"a":[1]},{"a":[1.0]}]`, `[[],{}]`, `[1,1,"a","a"]`, `[80,443,443]`, `[0,0]`,
		`{}`, `{"a":1}`, `{"a":"b"}`, `{"a":["b"]}`, `{"a":null}`, `{"mode":"local"}`, `{"":0}`, `{"passing":1,"warning":0}`, `{"port":8443}`} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			panic(err)
		}
		values = append(values, v)
	}
	return values
}

// Every corner at every place of the schema, and at every place of the other
// generation's.
func TestDecoderAgreesWithTheOracleEverywhere(t *testing.T) {
	t.Parallel()
	divisor := share()
	for _, g := range generations() {
		schema := oracle(t, g)
		places, cases := 0, 0
		var visit func(s *jsonschema.Schema, wrap func(any) any)
		visit = func(s *jsonschema.Schema, wrap func(any) any) {
			places++
			s = deref(s)
			for i, v := range corners() {
				if (i+places)%divisor == 0 {
					compare(t, schema, g, wrap(v))
					cases++
				}
			}
			for name, p := range s.Properties {
				visit(p, func(v any) any { return wrap(map[string]any{name: v}) })
			}
			if items, ok := s.Items.(*jsonschema.Schema); ok {
				visit(items, func(v any) any { return wrap([]any{v}) })
			}
			if values, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
				visit(values, func(v any) any { return wrap(map[string]any{"a b": v}) })
			}
		}
		for _, places := range generations() {
			visit(oracle(t, places), func(v any) any { return v })
		}
		if places < 200 || cases < 10_000/divisor {
			t.Errorf("%s: only %d cases at %d places", g, cases, places)
		}
	}
}

// share returns the divisor of the number of cases: the race detector makes them slow.
func share() int {
	if testing.Short() {
		return 4
	}
	return 1
}

// Whole documents, mostly valid, with a few faults at a time. The whole schema has
// the verdict of the part for the document's generation.
func TestDecoderAgreesWithTheOracleOnGeneratedDocuments(t *testing.T) {
	t.Parallel()
	whole := compile(t, schemaID)
	for _, g := range generations() {
		schema := oracle(t, g)
		valid, invalid := 0, 0
		for seed := range uint64(2000 / share()) {
			gen := generator{rand.New(rand.NewPCG(seed, 1)), corners(), []float64{0, 0.02, 0.1}[seed%3]}
			doc := gen.value(schema)
			compare(t, schema, g, doc)
			ok := schema.Validate(doc) == nil
			if ok {
				valid++
			} else {
				invalid++
			}
			if object, _ := doc.(map[string]any); ok || g == agentless && object["consulServers"] != nil {
				if wholly := whole.Validate(doc) == nil; wholly != ok {
					t.Errorf("%s: %v: the whole schema's verdict is %v, that of its part %v", g, doc, wholly, ok)
				}
			}
		}
		if valid < 300/share() || invalid < 300/share() {
			t.Errorf("%s: %d valid and %d invalid documents prove little", g, valid, invalid)
		}
	}
}

// generator makes documents from the schema. A part of them, faults, is any
// value at all.
type generator struct {
	*rand.Rand
	corners []any
	faults  float64
}

func (g generator) pick(values ...any) any { return values[g.IntN(len(values))] }

func (g generator) value(s *jsonschema.Schema) any {
	s = deref(s)
	if g.Float64() < g.faults {
		return g.pick(g.corners...)
	}
	if s.Enum != nil {
		return g.pick(s.Enum.Values...)
	}
	switch s.Types.ToStrings()[g.IntN(len(s.Types.ToStrings()))] {
	case "null":
		return nil
	case "boolean":
		return g.IntN(2) == 0
	case "integer":
		return g.pick(json.Number(s.Minimum.RatString()), json.Number(s.Maximum.RatString()), json.Number("80.0"))
	case "array":
		return g.list(s)
	case "object":
		return g.object(s)
	}
	switch {
	case s.Format != nil:
		return g.pick("", "10s", "1.5h", "+0", "300ms")
	case s.Pattern != nil:
		return g.pick("", "http")
	default:
		return "text " + strconv.Itoa(g.Int())
	}
}

func (g generator) list(s *jsonschema.Schema) []any {
	items, _ := s.Items.(*jsonschema.Schema)
	list := []any{}
	for range g.IntN(5) {
		list = append(list, g.value(items))
	}
	if len(list) > 1 && g.Float64() < g.faults {
		list = append(list, list[g.IntN(len(list))])
	}
	return list
}

func (g generator) object(s *jsonschema.Schema) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // the same document for the same seed
		p := s.Properties[name]
		required := slices.Contains(s.Required, name)
		if g.Float64() < g.faults || (!required && g.IntN(3) > 0) {
			continue
		}
		object[name] = g.value(p)
	}
	switch values := s.AdditionalProperties.(type) {
	case *jsonschema.Schema:
		object["some key"] = g.value(values)
	default:
		if g.Float64() < g.faults {
			object[g.pick("bogus", "checks", "consulHTTPAddr", "controller", "datacenter", "destinationPeer", "healthCheckPort").(string)] = g.pick(g.corners...)
		}
	}
	return object
}

func FuzzDecoderAgreesWithTheOracle(f *testing.F) {
	schemas := map[string]*jsonschema.Schema{agent: oracle(f, agent), agentless: oracle(f, agentless)}
	for _, name := range []string{"extensive.json", "nested-nulls.json", "agentless-everything.json", "agentless-nested-nulls.json"} {
		doc, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	for i, v := range corners() {
		text, err := json.Marshal(map[string]any{"bootstrapDir": "/c", "service": map[string]any{"port": v, "tags": v, "checks": []any{v}}})
		if err != nil {
			f.Fatal(i, err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"bootstrapDir":"/c","proxy":{"upstreams":[{"localBindPort":0,"x":1}]},"gateway":{"kind":"mesh-gateway","tags":["a","a"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := checkSyntax(text); err != nil {
			return
		}
		if _, found := decode(text, agent); len(found.malformed) > 0 {
			return
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range generations() {
			compare(t, schemas[g], g, doc)
		}
	})
}
