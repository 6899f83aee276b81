package iam

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// JSON answers with v and the status.
func JSON(w http.ResponseWriter, status int, v any) {
	// The encoder hands its own buffer over. json.Marshal would copy it, which
	// is most of what a poll of /task leaves to the garbage collector.
	b := &body{to: w, status: status}
	if err := json.NewEncoder(b).Encode(v); err != nil && !b.begun { // only for a type that JSON cannot hold
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// body takes the one Write of an encoder.
type body struct {
	to     http.ResponseWriter
	status int
	begun  bool
}

// Write implements io.Writer.
func (b *body) Write(text []byte) (int, error) {
	b.begun = true
	b.to.Header().Set("Content-Type", "application/json")
	b.to.WriteHeader(b.status)
	b.to.Write(bytes.TrimSuffix(text, []byte("\n"))) // an error means the client is gone
	return len(text), nil
}
