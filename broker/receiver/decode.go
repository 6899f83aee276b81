package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrTooLong means that a body has more than MaxBody bytes.
var ErrTooLong = fmt.Errorf("body longer than %d bytes", MaxBody)

// ReadBody reads a body of at most MaxBody bytes.
func ReadBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		err = ErrTooLong
	}
	return body, err
}

// decode reads one JSON object of known fields and nothing after it.
func decode(body []byte, into any) error {
	if len(body) > MaxBody {
		return ErrTooLong
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return withoutText(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the JSON object")
	}
	return nil
}

// decodeWith decodes a body and returns the defect that check reports, if any.
func decodeWith[T any](body []byte, what string, check func(T) string) (T, error) {
	var decoded, none T
	if err := decode(body, &decoded); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if defect := check(decoded); defect != "" {
		return none, fmt.Errorf("%s: %s", what, defect)
	}
	return decoded, nil
}

// withoutText drops the quotations of the decoder's errors: a body may hold a secret.
func withoutText(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at offset %d", syntax.Offset)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q has the wrong type", mismatch.Field)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("incomplete JSON")
	}
	return errors.New(Cut(err.Error(), maxField)) // names an unknown field
}

// maxField bounds what an error has of a field's name, in bytes.
const maxField = 64

// Cut returns a text of a caller without what follows a number of bytes, for errors and logs.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

func missing(field, value string) string {
	if value == "" {
		return "no " + field
	}
	return ""
}
