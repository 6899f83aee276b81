package file

import (
	"errors"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// Secret is a value, or the file that has it.
type Secret struct {
	Value string `yaml:"-"`
	// File has the value, whose last newline does not count.
	File string `yaml:"file"`
}

// UnmarshalYAML takes the value, or the mapping.
func (s *Secret) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&s.Value) == nil {
		return nil
	}
	type mapping Secret // without this method
	if err := unmarshal((*mapping)(s)); err != nil {
		return err
	}
	if s.File == "" {
		return errors.New("secrets: want a value, or {file: FILE}")
	}
	return nil
}

// text returns the value; inDir returns where the file is.
func (s Secret) text(inDir func(string) string) (string, error) {
	if s.File == "" {
		return s.Value, nil
	}
	return ReadSecret(inDir(s.File))
}

// ReadSecret returns the secret in a file, without a newline at its end.
func ReadSecret(path string) (string, error) {
	data, err := cli.ReadFile(path, maxBytes)
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), err
}
