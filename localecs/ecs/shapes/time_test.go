package shapes_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestTimesAreEpochSeconds(t *testing.T) {
	t.Parallel()
	type answer struct {
		At    shapes.Time `json:"at"`
		Never shapes.Time `json:"never,omitzero"`
	}
	at := time.Date(2026, 3, 2, 17, 8, 41, 102_337_458, time.FixedZone("", 3600))
	text, err := json.Marshal(answer{At: shapes.At(at)})
	if want := `{"at":1772467721.102}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var back answer
	if err := json.Unmarshal(text, &back); err != nil || !back.At.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("%v, %v", back, err)
	}
	if text, err := json.Marshal(shapes.Time{}); err != nil || string(text) != "null" {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte("null"), &back.At); err != nil || !back.At.IsZero() {
		t.Errorf("%v, %v", back.At, err)
	}
	if err := json.Unmarshal([]byte(`"yesterday"`), &back.At); err == nil {
		t.Error("a word is a time")
	}
}
