package envoy

import (
	"maps"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestParseStats(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		want   map[string]uint64
		err    string
	}{
		"none":              {"", map[string]uint64{}, ""},
		"name with a colon": {"a.10.0.0.1:80.b: 2\nc: 0\n", map[string]uint64{"a.10.0.0.1:80.b": 2, "c": 0}, ""},
		"blank line":        {"\na: 1\r\n\n", map[string]uint64{"a": 1}, ""},
		"histogram": {"a: 1\nb: P0(nan,1)\nc: no\nd: 4", map[string]uint64{"a": 1, "d": 4},
			`"b: P0(nan,1)" is not a counter`},
		"negative": {"a: -1", map[string]uint64{}, `"a: -1" is not a counter`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseStats([]byte(tc.answer))
			if !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			testkit.Equal(t, "error", text, tc.err)
		})
	}
}
