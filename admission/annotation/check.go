package annotation

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/config"
)

// MaxMeta is how many annotations Meta a definition may have: Consul takes 64 pairs, and
// registration adds three itself.
const MaxMeta = 64 - 3

// Consul's limits, in bytes.
const maxMetaKey, maxMetaValue, maxPolicyName = 128, 512, 128

var (
	metaKey    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })
	policyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+/?[A-Za-z0-9_-]*$`) })
)

// Problem is a value, or a word of one, that an annotation must not have, and what it
// should be.
type Problem struct{ Value, Want string }

// Check checks the value of an annotation that is passed on to Consul or to the token
// broker.
func Check(name, value string) []Problem {
	switch {
	case strings.HasPrefix(name, Meta):
		return checkMeta(strings.TrimPrefix(name, Meta), value)
	case name == Namespace || name == Partition:
		if !config.IsDNSLabel(value) {
			return []Problem{{value, "up to 63 letters, digits and '-', which is neither first nor last"}}
		}
	case name == KeyPrefixes:
		return each(value, "a prefix without the leading slash: no key begins with one", func(word string) bool { return !strings.HasPrefix(word, "/") })
	case name == Policies:
		want := fmt.Sprintf("names of policies, of up to %d letters, digits, '_' and '-'", maxPolicyName)
		if len(Words(value)) == 0 {
			return []Problem{{value, want}} // the broker issues no token without a policy
		}
		return each(value, want, func(word string) bool { return len(word) <= maxPolicyName && policyName().MatchString(word) })
	case name == TTL:
		if ttl, err := time.ParseDuration(value); value != config.TaskLife && (err != nil || ttl < config.MinTokenTTL || ttl > config.MaxTokenTTL) {
			return []Problem{{value, fmt.Sprintf("a duration from %s to %s, or %s", config.MinTokenTTL, config.MaxTokenTTL, config.TaskLife)}}
		}
	}
	return nil
}

// OfBroker reports whether an annotation counts without the mesh, too.
func OfBroker(name string) bool { return name == Policies || name == TTL }

func each(list, want string, valid func(word string) bool) []Problem {
	var all []Problem
	for _, word := range Words(list) {
		if !valid(word) {
			all = append(all, Problem{word, want})
		}
	}
	return all
}

func checkMeta(key, value string) []Problem {
	switch {
	case !metaKey().MatchString(key) || len(key) > maxMetaKey:
		return []Problem{{value, fmt.Sprintf("a key after %s of up to %d letters, digits, '_' and '-'", Meta, maxMetaKey)}}
	case strings.HasPrefix(key, "consul-"):
		return []Problem{{value, "another key: Consul reserves those that begin with consul-"}}
	case len(value) > maxMetaValue:
		return []Problem{{fmt.Sprintf("(%d bytes)", len(value)), fmt.Sprintf("at most %d bytes", maxMetaValue)}} // it may be secret
	}
	return nil
}
