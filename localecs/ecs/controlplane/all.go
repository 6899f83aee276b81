package controlplane

import (
	"cmp"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// All are the services of all clusters that are not INACTIVE, as they are now,
// sorted by cluster and name.
func (s *Services) All(now time.Time) []shapes.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []shapes.Service
	for _, v := range s.byKey {
		if v.status != shapes.Inactive {
			all = append(all, s.shape(v, now, 0))
		}
	}
	slices.SortFunc(all, func(a, b shapes.Service) int { return cmp.Compare(a.ServiceARN, b.ServiceARN) })
	return all
}
