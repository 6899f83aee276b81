package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Record is what one controller claims of the trust in shared auth methods. It
// is written before the method, so an ARN of a record is the controllers', even
// if an operator writes the same one again.
type Record struct {
	// Cluster is the ARN of the controller's cluster.
	Cluster string `json:"cluster"`
	// Trust has the claims by auth method, sorted by ARN.
	Trust map[string][]Claim `json:"trust"`
}

// Claim is one principal ARN that a controller wants in a method.
type Claim struct {
	ARN string `json:"arn"`
	// Added means that a controller put the ARN there; else it was found in the method,
	// and this controller does not remove it.
	Added bool `json:"added"`
}

// maxRecord bounds a record: Consul's own limit for a KV value is 512 KiB.
const maxRecord = 512 << 10

// parseRecord reads a record as encode writes it. Unknown fields are a later
// version's, so they are an error: what they claim must not be lost.
func parseRecord(data []byte) (Record, error) {
	var r Record
	if len(data) > maxRecord {
		return Record{}, fmt.Errorf("invalid trust record: %d bytes, want at most %d", len(data), maxRecord)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("invalid trust record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("invalid trust record: trailing data")
	}
	if r.Cluster == "" {
		return Record{}, errors.New("invalid trust record: it names no cluster")
	}
	return r, nil
}

// encode is the record as it is stored, the same for the same claims.
func (r Record) encode() []byte {
	for _, claims := range r.Trust {
		slices.SortFunc(claims, func(a, b Claim) int { return strings.Compare(a.ARN, b.ARN) })
	}
	data, _ := json.Marshal(r) // strings and booleans
	return data
}

// claim finds the record's claim of an ARN.
func (r Record) claim(method, arn string) (Claim, bool) {
	for _, claim := range r.Trust[method] {
		if claim.ARN == arn {
			return claim, true
		}
	}
	return Claim{}, false
}
