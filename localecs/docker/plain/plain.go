// Package plain has the words of an engine as people want them.
//
// Flow: 1. Rune makes names that the engine takes; 2. Error drops what an error says
// of the hands it went through.
//
// Owns: nothing. Never does: ask an engine.
// Start reading at: Error.
package plain

import (
	"errors"
	"strings"
)

// Rune is r if the engine takes it in names, a hyphen otherwise.
func Rune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
		return r
	}
	return '-'
}

// Error drops the words that say through whom an error came.
func Error(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "Error response from daemon: "); ok {
		return errors.New(text)
	}
	return err
}

// Cause is why a container could not be started, in the words of the system.
func Cause(err error) error {
	text := err.Error()
	for _, before := range []string{"unable to start container process: ", "starting container process caused: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			return errors.New(strings.TrimSuffix(after, ": unknown"))
		}
	}
	return Error(err)
}
