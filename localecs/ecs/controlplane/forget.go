package controlplane

import (
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	// keepInactive is how long a deleted service is shown: AWS purges them, and
	// does not say when.
	keepInactive = time.Hour
	// keepToken is how long a client token stands for its first call.
	keepToken = 24 * time.Hour
)

// forget drops services and client tokens that have had their time.
func (s *Services) forget(now time.Time) {
	maps.DeleteFunc(s.byKey, func(_ key, v *service) bool {
		return v.status == shapes.Inactive && now.Sub(v.ended) >= keepInactive
	})
	maps.DeleteFunc(s.tokens, func(_ string, t token) bool { return now.Sub(t.at) >= keepToken })
}

// forget drops what was known of deployments that are over.
func (v *service) forget() {
	over := func(id string) bool {
		return !slices.ContainsFunc(v.Deployments, func(d *Deployment) bool { return d.ID == id })
	}
	maps.DeleteFunc(v.settings, func(id string, _ shapes.RunTaskInput) bool { return over(id) })
	maps.DeleteFunc(v.revisions, func(id string, _ revision) bool { return over(id) })
}
