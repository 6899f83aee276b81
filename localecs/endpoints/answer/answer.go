// Package answer writes the JSON answers of a task's endpoints as the ECS agent
// does: without a final newline.
//
// Owns: status, content type and encoding.
// Never does: word an error.
// Start reading at: JSON.
package answer

import (
	"encoding/json"
	"net/http"
)

// JSON answers with v and the status.
func JSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // only for a type that JSON cannot hold
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // an error means the client is gone
}
