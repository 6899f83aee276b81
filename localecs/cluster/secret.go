package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// currentVersion is the version of a secret that no valueFrom needs to name.
const currentVersion = "AWSCURRENT"

// errFormat is the ECS agent's word for a wrong number of suffixes.
var errFormat = errors.New("unexpected ARN format with parameters when trying to retrieve ASM secret")

// Secret returns the value behind a secret's valueFrom: an SSM parameter's name
// or ARN, or a Secrets Manager ARN, either plain or with three suffixes, each
// possibly empty: arn:...:secret:name-AbCdEf:json-key:version-stage:version-id.
//
// The store has a parameter under its name or its ARN, a secret under its plain ARN, and another version than the
// current one under that version's valueFrom without the json-key: arn:...:secret:name-AbCdEf::AWSPREVIOUS:.
func Secret(valueFrom string, store Store) (string, error) {
	parts := strings.Split(valueFrom, ":")
	switch {
	case len(parts) < 6 || parts[0] != "arn":
		return parameter(valueFrom, []string{valueFrom}, store)
	case parts[2] == "secretsmanager":
		value, err := managed(parts, store)
		if err != nil {
			return "", fmt.Errorf("unable to retrieve secret from asm: %w", err)
		}
		return value, nil
	}
	// The ARN of /team/key is ...:parameter/team/key, and that of key is ...:parameter/key.
	name, _ := strings.CutPrefix(strings.Join(parts[5:], ":"), "parameter/")
	return parameter(valueFrom, []string{valueFrom, "/" + name, name}, store)
}

func parameter(valueFrom string, names []string, store Store) (string, error) {
	for _, name := range names {
		if value, ok := store(name); ok {
			return value, nil
		}
	}
	err := &NoValueError{Name: valueFrom}
	return "", fmt.Errorf("unable to retrieve parameters from ssm: invalid parameters: %w", err)
}

func managed(parts []string, store Store) (string, error) {
	const plain, suffixed = 7, 10
	if len(parts) != plain && len(parts) != suffixed {
		return "", errFormat
	}
	name := strings.Join(parts[:plain], ":")
	if len(parts) == plain {
		parts = append(parts, "", "", "")
	}
	key, stage, id := parts[7], parts[8], parts[9]
	if id != "" || stage != "" && stage != currentVersion {
		name += "::" + stage + ":" + id
	}
	value, ok := store(name)
	switch {
	case !ok:
		return "", fmt.Errorf("ResourceNotFoundException: %w", &NoValueError{Name: name, Key: key})
	case key == "":
		return value, nil
	}
	return jsonKey(value, key)
}

// jsonKey returns one value of a JSON object. What is no text is written as the
// agent does, in Go's default format: 10000000 becomes 1e+07.
func jsonKey(document, key string) (string, error) {
	var values map[string]any
	if err := json.Unmarshal([]byte(document), &values); err != nil {
		// Not %w: the error may quote the secret.
		return "", errors.New("retrieved secret from Secrets Manager is no JSON object")
	}
	value, ok := values[key]
	if !ok {
		return "", fmt.Errorf("retrieved secret from Secrets Manager did not contain json key %s", key)
	}
	return fmt.Sprint(value), nil
}

// NoValueError means that the store has no value of that name. Key is the key of it that
// was wanted; empty for the whole value.
type NoValueError struct{ Name, Key string }

// Error includes what to do.
func (e *NoValueError) Error() string {
	return fmt.Sprintf("no value for %s; add it to the local secrets", e.Name)
}
