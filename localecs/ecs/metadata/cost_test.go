package metadata_test

import (
	"net/http"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

// sink is a client that takes every answer.
type sink struct {
	header        http.Header
	writes, bytes int
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(int)     {}
func (s *sink) Write(b []byte) (int, error) {
	s.writes++
	s.bytes += len(b)
	return len(b), nil
}

// A task polls this forty times a second, and there may be two hundred: what an
// answer leaves to the garbage collector is what the slowest ones wait for.
func TestAnswerRetainsLittleMemory(t *testing.T) {
	m := phases(t)["phase-b-running"]
	h := metadata.New(metadata.Options{Lookup: lookup(m)})
	for what, most := range map[string]float64{"": 70, "/task": 200} { // 47 and 150 now
		r, err := http.NewRequest(http.MethodGet, "/v4/"+appID+what, nil)
		if err != nil {
			t.Fatal(err)
		}
		to := &sink{header: http.Header{}}
		const answers = 100
		got := testing.AllocsPerRun(answers-1, func() { h.ServeHTTP(to, r) })
		if got > most {
			t.Errorf("%q: %.0f allocations an answer, want at most %.0f", what, got, most)
		}
		if to.writes != answers || to.bytes < 500*answers {
			t.Errorf("%q: %d writes of %d bytes, want %d whole answers", what, to.writes, to.bytes, answers)
		}
	}
}
