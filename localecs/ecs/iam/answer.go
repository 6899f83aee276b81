package iam

import (
	"encoding/json"
	"net/http"
)

// JSON answers with v, which encoding/json can hold, and the status.
func JSON(w http.ResponseWriter, status int, v any) {
	text, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text) // an error means the client is gone
}
