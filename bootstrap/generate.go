package bootstrap

import "errors"

// Generate returns the bootstrap as indented JSON.
func Generate(p Params) ([]byte, error) {
	return nil, errors.New("generate Envoy bootstrap: not implemented")
}
