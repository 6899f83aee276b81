package controlplane_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// item returns provider F or S with base and weight.
func item(name string, base, weight int) shapes.StrategyItem {
	return shapes.StrategyItem{
		CapacityProvider: map[string]string{"F": "FARGATE", "S": "FARGATE_SPOT"}[name], Base: base, Weight: weight,
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		items   []shapes.StrategyItem
		running map[string]int
		n       int
		want    string
	}{
		{nil, nil, 2, ""},
		{[]shapes.StrategyItem{item("F", 0, 0)}, nil, 2, "FF"},
		{[]shapes.StrategyItem{item("F", 0, 1), item("S", 0, 1)}, nil, 5, "FSFSF"},
		{[]shapes.StrategyItem{item("F", 0, 1), item("S", 0, 4)}, nil, 10, "SSSFSSSSFS"}, // for every one, four
		{[]shapes.StrategyItem{item("F", 2, 1), item("S", 0, 1)}, nil, 6, "FFFSFS"},
		{[]shapes.StrategyItem{item("F", 0, 1), item("S", 1, 3)}, nil, 5, "SSSFS"},
		{[]shapes.StrategyItem{item("F", 3, 0), item("S", 0, 1)}, nil, 6, "FFFSSS"}, // weight 0 is for base only
		{[]shapes.StrategyItem{item("F", 0, 0), item("S", 0, 7)}, nil, 3, "SSS"},
		{[]shapes.StrategyItem{item("F", 2, 1), item("S", 0, 1)}, map[string]int{"FARGATE": 1, "FARGATE_SPOT": 4}, 5,
			"FFFFF"},
		{[]shapes.StrategyItem{item("F", 0, 1), item("S", 0, 1)}, map[string]int{"FARGATE_SPOT": 2, "OTHER": 9}, 3,
			"FFF"},
	} {
		got := ""
		for _, name := range controlplane.Spread(c.items, c.running, c.n) {
			got += map[string]string{"FARGATE": "F", "FARGATE_SPOT": "S"}[name]
		}
		if got != c.want {
			t.Errorf("%v with %v: got %s, want %s", c.items, c.running, got, c.want)
		}
	}
}

// Of 10,000 tasks the shares are those of the weights.
func TestSharesAreThoseOfTheWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, f, s, want int }{{0, 1, 1, 5000}, {0, 1, 4, 2000}, {0, 3, 997, 30},
		{1000, 1, 2, 4000}} {
		counts := map[string]int{}
		for _, name := range controlplane.Spread([]shapes.StrategyItem{item("F", c.base, c.f), item("S", 0, c.s)}, nil,
			10_000) {
			counts[name]++
		}
		if got := counts["FARGATE"]; got != c.want {
			t.Errorf("base %d, %d:%d: %d of 10,000, want %d", c.base, c.f, c.s, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	both := controlplane.Fargate()
	for want, c := range map[string]struct {
		providers []string
		items     []shapes.StrategyItem
	}{
		"": {both, []shapes.StrategyItem{item("F", 1, 0), item("S", 0, 1)}},
		"The specified capacity provider 'mine' was": {[]string{"mine"}, nil},
		"that is not associated with the cluster":    {[]string{"FARGATE"}, []shapes.StrategyItem{item("S", 0, 1)}},
		"The base of a capacity provider must":       {both, []shapes.StrategyItem{item("F", 100_001, 1)}},
		"The weight of a capacity provider must":     {both, []shapes.StrategyItem{item("F", 0, 1001)}},
		"Only one capacity provider of a":            {both, []shapes.StrategyItem{item("F", 1, 1), item("S", 1, 1)}},
		"must have a weight greater than zero":       {both, []shapes.StrategyItem{item("F", 1, 0), item("S", 0, 0)}},
		"can have at most 20 capacity providers":     {both, make21()},
	} {
		testkit.ErrorContains(t, controlplane.Check(c.providers, c.items), want)
	}
}

func make21() (items []shapes.StrategyItem) {
	for range 21 {
		items = append(items, item("F", 0, 1))
	}
	return items
}
