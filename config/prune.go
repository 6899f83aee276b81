package config

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// hint explains a field that other versions have. The key is its path.
func hint(path string) string {
	switch path {
	case "$.consulLogin.extraLoginFlags":
		return "removed in 0.6.0, because login no longer runs the consul command; use meta, region, stsEndpoint and serverIdHeaderValue"
	case "$.controller", "$.transparentProxy", "$.consulLogin.datacenter":
		return "belongs to the agentless configuration, which has consulServers at its root"
	}
	return ""
}

// unknownField says what an object takes in place of the field name.
func unknownField(path, name string, object *schema) string {
	known := object.names()
	text := "unknown field"
	if h := hint(field(path, name)); h != "" {
		text += ": " + h
	} else if n := nearest.Key(name, known); n != "" {
		text += `; did you mean "` + n + `"?`
	}
	return text + "; allowed: " + strings.Join(known, ", ")
}

// ignoredField is unknownField for an object that ignores what it does not know.
func ignoredField(name string, object *schema) string {
	text := "unknown field, ignored"
	if n := nearest.Key(name, object.names()); n != "" {
		text += `; did you mean "` + n + `"?`
	}
	return text
}

// prune makes a document fit for encoding/json, if it is valid: it removes the unknown
// fields that the schema lets pass, which would be decoded in spite of their
// case, and writes integers such as 1.0 and 1e3 as integers. Objects without
// listed properties are opaque and stay as they are.
func prune(path string, v any, s *schema) (any, []Warning) {
	var ws []Warning
	switch v := v.(type) {
	case map[string]any:
		if len(s.Properties) == 0 {
			return v, nil
		}
		for name, value := range v {
			p, known := s.Properties[name]
			if !known {
				if !s.closed() { // otherwise it is a violation
					ws = append(ws, Warning{field(path, name), ignoredField(name, s)})
				}
				delete(v, name)
				continue
			}
			pruned, more := prune(field(path, name), value, p)
			v[name], ws = pruned, append(ws, more...)
		}
	case []any:
		if s.Items == nil {
			return v, nil
		}
		for i, value := range v {
			pruned, more := prune(item(path, i), value, s.Items)
			v[i], ws = pruned, append(ws, more...)
		}
	case json.Number:
		// In a valid document, range and wholeness are proven by the schema.
		if n, ok := kindNumber(v); ok && n.IsInt() {
			return json.Number(n.Num().String()), nil
		}
	}
	return v, ws
}

// kindNumber is v as an exact number.
func kindNumber(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
