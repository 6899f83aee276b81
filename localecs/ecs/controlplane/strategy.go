package controlplane

import (
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Limits of a strategy.
const (
	maxItems  = 20
	maxBase   = 100_000
	maxWeight = 1000
)

// Fargate returns the capacity providers that need no setup, and all there are.
func Fargate() []string { return []string{shapes.Fargate, "FARGATE_SPOT"} }

// Check wants a cluster's providers to be Fargate's, and a strategy to be of
// them. The texts about base and weight are not AWS's, which are not known.
func Check(providers []string, items []shapes.StrategyItem) error {
	for _, name := range providers {
		if !slices.Contains(Fargate(), name) {
			return shapes.Invalid("The specified capacity provider '%s' was not found. Specify a valid name or ARN "+
				"and try again.", name)
		}
	}
	based, weight := 0, 0
	for _, s := range items {
		switch {
		case !slices.Contains(providers, s.CapacityProvider):
			return shapes.Invalid("The specified capacity provider strategy cannot contain a capacity provider that " +
				"is not associated with the cluster. Associate the capacity provider with the cluster and try again.")
		case s.Base < 0 || s.Base > maxBase:
			return shapes.Invalid("The base of a capacity provider must be between 0 and %d.", maxBase)
		case s.Weight < 0 || s.Weight > maxWeight:
			return shapes.Invalid("The weight of a capacity provider must be between 0 and %d.", maxWeight)
		}
		weight += s.Weight
		if s.Base > 0 {
			based++
		}
	}
	switch {
	case len(items) > maxItems:
		return shapes.Invalid("A capacity provider strategy can have at most %d capacity providers.", maxItems)
	case based > 1:
		return shapes.Invalid("Only one capacity provider of a strategy can have a base.")
	case len(items) > 1 && weight == 0:
		return shapes.Invalid("At least one capacity provider of a strategy must have a weight greater than zero.")
	}
	return nil
}

// Spread returns the providers of the next n tasks, where running of each are
// there already. The base of each comes first; the others go where by weight
// most are missing, of equals to the one that the strategy names first. A lone
// provider needs no weight; it is nil without a strategy.
func Spread(items []shapes.StrategyItem, running map[string]int, n int) []string {
	if len(items) == 0 {
		return nil
	}
	have := map[string]int{}
	for _, s := range items {
		have[s.CapacityProvider] = running[s.CapacityProvider]
	}
	var providers []string
	for range n {
		next := items[0]
		for _, s := range items[1:] {
			if before(s, next, have) {
				next = s
			}
		}
		have[next.CapacityProvider]++
		providers = append(providers, next.CapacityProvider)
	}
	return providers
}

// before reports whether a is to have the next task rather than b.
func before(a, b shapes.StrategyItem, have map[string]int) bool {
	beyondA, beyondB := have[a.CapacityProvider]-a.Base, have[b.CapacityProvider]-b.Base
	switch {
	case beyondA < 0 || beyondB < 0:
		return beyondB >= 0
	case a.Weight == 0 || b.Weight == 0:
		return b.Weight == 0 && a.Weight > 0
	}
	// (beyond+1)/weight is how far the provider would be ahead.
	return (beyondA+1)*b.Weight < (beyondB+1)*a.Weight
}
