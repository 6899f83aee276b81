package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	figure string
	unit   unit
	// old is version 0.6's known value, goal ours; texts, as they may say
	// more than a number.
	old, goal string
	ours      sample
	refs      []reference
}

// reference is a floor or a peer measured in the same run.
type reference struct {
	what   string
	values sample
}

// writeTable prints the rows; further references of a row follow on lines of
// their own.
func writeTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\told 0.6\tgoal\tours min/median/max\tfloor or peer min/median/max\tratio")
	for _, r := range rows {
		fmt.Fprintf(t, "%s, %s\t%s\t%s\t%s", r.figure, r.unit, r.old, r.goal, r.unit.triple(r.ours))
		for i, ref := range r.refs {
			if i > 0 {
				fmt.Fprint(t, "\t\t\t")
			}
			fmt.Fprintf(t, "\t%s (%s)\t%.2f\n", r.unit.triple(ref.values), ref.what, ratio(r.ours, ref.values))
		}
		if len(r.refs) == 0 {
			fmt.Fprintln(t, "\t-\t-")
		}
	}
	return t.Flush()
}

// triple returns min, median and max, or the one value when they are the same.
func (u unit) triple(s sample) string {
	switch {
	case len(s) == 0:
		return "not measured"
	case s.min() == s.max():
		return u.format(s.median())
	}
	return fmt.Sprintf("%s / %s / %s", u.format(s.min()), u.format(s.median()), u.format(s.max()))
}

type jsonSample struct {
	What   string  `json:"what,omitempty"`
	Runs   int     `json:"runs"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// Ratio is our median over this one's.
	Ratio float64 `json:"ratio,omitempty"`
}

func (s sample) json() jsonSample {
	return jsonSample{Runs: len(s), Min: s.min(), Median: s.median(), Max: s.max()}
}

// MarshalJSON gives a row's statistics.
func (r row) MarshalJSON() ([]byte, error) {
	refs := make([]jsonSample, 0, len(r.refs))
	for _, ref := range r.refs {
		j := ref.values.json()
		j.What, j.Ratio = ref.what, ratio(r.ours, ref.values)
		refs = append(refs, j)
	}
	return json.Marshal(struct {
		Figure     string       `json:"figure"`
		Unit       unit         `json:"unit"`
		Old        string       `json:"old"`
		Goal       string       `json:"goal"`
		Ours       jsonSample   `json:"ours"`
		References []jsonSample `json:"references"`
	}{r.figure, r.unit, r.old, r.goal, r.ours.json(), refs})
}
