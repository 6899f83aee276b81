// Package strategy spreads tasks over capacity providers.
//
// Flow: 1. Check refuses what AWS does; 2. Spread says which provider each of the
// next tasks is of: first as many as base wants, then by weight.
//
// Owns: the rules of "Amazon ECS capacity provider strategy" in the ECS API
// Reference, CapacityProviderStrategyItem.
// Never does: know tasks or clusters.
// Start reading at: Spread.
package strategy
