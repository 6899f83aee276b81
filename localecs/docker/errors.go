package docker

import (
	"errors"
	"strings"
)

// allowedRune returns r if the engine takes it in names, a hyphen otherwise.
func allowedRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
		return r
	}
	return '-'
}

// engineError drops the words of the client from an error of the engine.
func engineError(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "Error response from daemon: "); ok {
		return errors.New(text)
	}
	return err
}

// cause returns why a container could not be started, in the words of the system.
func cause(err error) error {
	text := err.Error()
	for _, before := range []string{"unable to start container process: ", "starting container process caused: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			return errors.New(strings.TrimSuffix(after, ": unknown"))
		}
	}
	return engineError(err)
}
