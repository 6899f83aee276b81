package subcommand

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestServesLooksAtAPortOfLoopback(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("/moved", http.RedirectHandler("/ok", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	port := func() int {
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}()
	for path, want := range map[string]bool{"": true, "/ok": true, "/moved": false, "/unknown": false} {
		if err := serves(t.Context(), port, path); (err == nil) != want {
			t.Errorf("%q: %v, want success %v", path, err, want)
		}
	}
	closed := testkit.ReservePort(t).Port
	for _, path := range []string{"", "/ok"} {
		if serves(t.Context(), closed, path) == nil {
			t.Errorf("%q: success at a closed port", path)
		}
	}
}
