package admission

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/config"
)

// maxMeta is how many annotations service-meta-<key> a definition may have: Consul takes 64 pairs, and
// registration adds three itself.
const maxMeta = 64 - 3

// Consul's limits, in bytes.
const maxMetaKey, maxMetaValue, maxPolicyName = 128, 512, 128

var (
	metaKey    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })
	policyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+/?[A-Za-z0-9_-]*$`) })
)

// problem is a value, or a word of one, that an annotation must not have, and what it
// should be.
type problem struct{ Value, Want string }

// checkAnnotation checks the value of an annotation that is passed on to Consul or
// to the token broker.
func checkAnnotation(name, value string) []problem {
	switch {
	case strings.HasPrefix(name, annotationMeta):
		return checkMeta(strings.TrimPrefix(name, annotationMeta), value)
	case name == annotationNamespace || name == annotationPartition:
		if !config.IsDNSLabel(value) {
			return []problem{{value, "up to 63 letters, digits and '-', which is neither first nor last"}}
		}
	case name == annotationKeyPrefixes:
		return eachWord(value, "a prefix without the leading slash: no key begins with one",
			func(word string) bool { return !strings.HasPrefix(word, "/") })
	case name == annotationPolicies:
		want := fmt.Sprintf("names of policies, of up to %d letters, digits, '_' and '-'", maxPolicyName)
		if len(config.SplitWords(value)) == 0 {
			return []problem{{value, want}} // the broker issues no token without a policy
		}
		return eachWord(value, want, func(word string) bool {
			return len(word) <= maxPolicyName &&
				policyName().MatchString(word)
		})
	case name == annotationTTL:
		if ttl, err := time.ParseDuration(value); value != config.TaskLife &&
			(err != nil || ttl < config.MinTokenTTL || ttl > config.MaxTokenTTL) {
			return []problem{{value, fmt.Sprintf("a duration from %s to %s, or %s", config.MinTokenTTL,
				config.MaxTokenTTL, config.TaskLife)}}
		}
	}
	return nil
}

// ofBroker reports whether an annotation counts without the mesh, too.
func ofBroker(name string) bool { return name == annotationPolicies || name == annotationTTL }

func eachWord(list, want string, valid func(word string) bool) []problem {
	var all []problem
	for _, word := range config.SplitWords(list) {
		if !valid(word) {
			all = append(all, problem{word, want})
		}
	}
	return all
}

func checkMeta(key, value string) []problem {
	switch {
	case !metaKey().MatchString(key) || len(key) > maxMetaKey:
		return []problem{{value, fmt.Sprintf("a key after service-meta- of up to %d letters, digits, '_' and '-'",
			maxMetaKey)}}
	case strings.HasPrefix(key, "consul-"):
		return []problem{{value, "another key: Consul reserves those that begin with consul-"}}
	case len(value) > maxMetaValue:
		// it may be secret
		return []problem{{fmt.Sprintf("(%d bytes)", len(value)), fmt.Sprintf("at most %d bytes", maxMetaValue)}}
	}
	return nil
}
