// Package secret holds values that must not reach a log, an error or a document by
// accident.
//
// A Value prints as <redacted> under every verb of fmt and every marshaller. Its text is
// returned by Reveal and by nothing else, so that a search for that method lists all
// places where a secret leaves the program.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

const redacted = "<redacted>"

// Value is a secret text. The zero Value is the empty text.
//
// The text is behind a pointer: fmt prints the unexported fields of a struct without
// their methods, and then shows an address. Compare by Equal, not by ==.
type Value struct{ text *string }

// New returns the Value of a text.
func New(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{text: &text}
}

// Reveal returns the text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// Empty reports whether the text is empty.
func (v Value) Empty() bool { return v.text == nil }

// Equal reports whether both have the same text. Its duration does not depend on where
// two texts of one length differ.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(other.Reveal())) == 1
}

// SHA256 returns the hash of the text, to find a secret without keeping it.
func (v Value) SHA256() [sha256.Size]byte { return sha256.Sum256([]byte(v.Reveal())) }

// String returns <redacted>.
func (Value) String() string { return redacted }

// Format writes <redacted> for every verb.
func (Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns <redacted>: JSON, XML and YAML encoders use it.
func (Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText takes the text, so that a JSON decoder can read a secret.
func (v *Value) UnmarshalText(text []byte) error {
	*v = New(string(text))
	return nil
}
