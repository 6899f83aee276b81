package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// Record is what one controller claims of one auth method. It is kept as the description of
// a binding rule of that method, which binds nothing: so only a client that may change
// the method can change it, and it is deleted with the method.
type Record struct {
	// Controller is State.controller.
	Controller string `json:"controller"`
	// Trust has the claims, sorted by ARN.
	Trust []Claim `json:"trust"`
	// TokenTTL is the MaxTokenTTL that the controller asked for and the method got; 0 for none.
	TokenTTL TTL `json:"tokenTTL,omitzero"`
}

// TTL is a duration that JSON has as text, such as "24h0m0s".
type TTL struct{ time.Duration }

// MarshalText implements encoding.TextMarshaler.
func (t TTL) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *TTL) UnmarshalText(text []byte) (err error) {
	t.Duration, err = time.ParseDuration(string(text))
	return errors.Join(err, CheckTokenTTL(t.Duration))
}

// Claim is one principal ARN that a controller wants in a method.
type Claim struct {
	ARN string `json:"arn"`
	// Added means that a controller put the ARN there; else it was found in the method,
	// and this controller does not remove it.
	Added bool `json:"added"`
}

const (
	// recordPrefix begins the description of a record's rule.
	recordPrefix = "Record of a consul-ecs controller, binds nothing: "
	// recordSelector matches no login: every role has an account.
	recordSelector = `account_id == ""`
	recordBindName = "consul-ecs-record"
)

// rule returns the binding rule that keeps the record: the given one corrected, or a new one for nil.
func (r Record) rule(method string, found *api.ACLBindingRule) *api.ACLBindingRule {
	var rule api.ACLBindingRule
	if found != nil {
		rule = *found
	}
	rule.AuthMethod, rule.Description, rule.Selector = method, recordPrefix+r.encode(), recordSelector
	rule.BindType, rule.BindName = api.BindingRuleBindTypeService, recordBindName
	return &rule
}

// parseRecord reads a record as encode writes it. Unknown fields are a later
// version's, so they are an error: what they claim must not be lost.
func parseRecord(text string) (Record, error) {
	var r Record
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("invalid trust record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("invalid trust record: trailing data")
	}
	if r.Controller == "" {
		return Record{}, errors.New("invalid trust record: it names no controller")
	}
	return r, nil
}

// Clusters returns the ARNs of the clusters of which a controller has a record among the binding
// rules of an auth method.
func Clusters(rules []*api.ACLBindingRule) (arns []string) {
	for _, rule := range rules {
		text, ok := strings.CutPrefix(rule.Description, recordPrefix)
		if r, err := parseRecord(text); ok && err == nil {
			arns = append(arns, strings.TrimSuffix(r.Controller, "/"+AgentlessName))
		}
	}
	return arns
}

// encode returns the record as it is stored.
func (r Record) encode() string {
	data, _ := json.Marshal(r) // strings and booleans
	return string(data)
}

// claim returns the record's claim of an ARN, and reports whether it has one.
func (r Record) claim(arn string) (Claim, bool) {
	for _, claim := range r.Trust {
		if claim.ARN == arn {
			return claim, true
		}
	}
	return Claim{}, false
}
