package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
)

//go:embed schema.json
var schemaJSON string

// Schema returns the JSON Schema (draft-07) of the document, for editors and
// other programs.
func Schema() []byte { return []byte(schemaJSON) }

// schema is the part of JSON Schema that schema.json uses, with the meaning of
// draft-07. A test refuses any other keyword.
type schema struct {
	Title                string             `json:"title"`
	Type                 types              `json:"type"`
	Enum                 []any              `json:"enum"`
	Minimum              *int64             `json:"minimum"`
	Maximum              *int64             `json:"maximum"`
	MinLength            int                `json:"minLength"`
	Pattern              *regexp.Regexp     `json:"pattern"`
	Format               string             `json:"format"`
	Items                *schema            `json:"items"`
	UniqueItems          bool               `json:"uniqueItems"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *additional        `json:"additionalProperties"`
}

// types is one type or a list of them.
type types []string

// UnmarshalJSON reads "string" as ["string"].
func (t *types) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(text, &(*t)[0])
}

// additional says what fields without a schema of their own have to be. With
// neither field set they have to be absent.
type additional struct {
	any    bool
	schema *schema
}

// UnmarshalJSON reads true, false or a schema.
func (a *additional) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		return json.Unmarshal(text, &a.schema)
	}
	return json.Unmarshal(text, &a.any)
}

// loaded is read on first use: most commands never parse a configuration.
var loaded = sync.OnceValues(load)

func load() (*schema, error) {
	s := new(schema)
	if err := json.Unmarshal([]byte(schemaJSON), s); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return s, nil
}

// closed reports whether an object must not have fields beside the known ones.
func (s *schema) closed() bool {
	a := s.AdditionalProperties
	return a != nil && !a.any && a.schema == nil
}

// names returns the fields that an object is known to have, sorted.
func (s *schema) names() []string { return slices.Sorted(maps.Keys(s.Properties)) }
