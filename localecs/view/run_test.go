package view_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

func TestParseRunRefusesWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	const head = `"scenario":"x","started":"2026-01-02T03:04:05Z"`
	for _, c := range []struct{ text, want string }{
		{`{` + head + `}`, ""},
		{`{` + head + `,"requests":{"bucket_seconds":0.1,"answered":[1],"lost":[0],"slowest_ms":[3]},` +
			`"tasks":[{"name":"a","served":[1,2]}]}`, ""},
		{`{}`, "it is not a timeline of localecs"},
		{`{"scenario":"x","begun":"2026-01-02T03:04:05Z"}`, `no "started" ("begun" in early versions)`},
		{`{` + head + `,"seconds":-1,"steps":[{"from":1e300,"to":2}]}`, "3 times in it are not between 0 and 1e+07 s"},
		{`{` + head + `,"tasks":[{"name":"a","last_served":-1,"events":[{"at":-1}]}],"events":[{"at":-2}]}`,
			"3 times in it"},
		{`{` + head + `,"requests":{"bucket_seconds":0.1,"answered":[1],"lost":[]}}`, "want as many answered as lost"},
		{`{` + head + `,"requests":{"bucket_seconds":0,"answered":[1],"lost":[0],"slowest_ms":[3]}}`,
			"1 buckets of 0 s"},
		{`{` + head + `,"requests":{"bucket_seconds":1e9,"answered":[1],"lost":[0],"slowest_ms":[3]}}`,
			"1 buckets of 1e+09 s"},
		{`{` + head + `,"tasks":[{"name":"a","served":[1]}]}`, "1 buckets of 0 s"},
	} {
		_, err := view.ParseRun([]byte(c.text))
		testkit.ErrorContains(t, err, c.want)
	}
}

func TestStepNamesItsTaskOnce(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]view.RecordedStep{
		"freeze api-1/envoy":   {Task: "api-1", Text: "freeze api-1/envoy"},
		"api-1 metadata hangs": {Task: "api-1", Text: "metadata hangs"}, "sts hangs": {Text: "sts hangs"},
	} {
		if got := s.About(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
