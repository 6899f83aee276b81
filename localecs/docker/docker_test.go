package docker

import (
	"testing"
	"time"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", DefaultAddress, "unix:///run/user/1000/docker.sock"} {
		if err := CheckAddress(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	const want = "the Docker engine at tcp://10.0.0.1:2375: localecs makes the tasks' network itself and has to run on the engine's host, where its address is unix://PATH; or in a container of that engine, as docs/localecs/how-to.md shows"
	if err := CheckAddress("tcp://10.0.0.1:2375"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The engine's word counts where it can be true.
func TestMoment(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Hour)
	reported := began.Add(time.Minute)
	if got := moment(reported.Format(time.RFC3339Nano), began); !got.Equal(reported.Round(0)) {
		t.Errorf("%v, want %v", got, reported)
	}
	for _, text := range []string{"", "0001-01-01T00:00:00Z", began.Add(-time.Second).Format(time.RFC3339Nano), time.Now().Add(time.Hour).Format(time.RFC3339Nano)} {
		if got := moment(text, began); time.Since(got) > time.Minute {
			t.Errorf("%q: %v, want now", text, got)
		}
	}
}
