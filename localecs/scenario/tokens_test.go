package scenario

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestTokenChangesAreRecorded(t *testing.T) {
	t.Parallel()
	const services = `{"AccessorID":"a1","AuthMethod":"services","Description":"token created via login: ` +
		`{\"task\":\"1234\"}","CreateTime":"2026-01-02T03:04:05Z"}`
	var answer atomic.Value
	answer.Store(`[{"AccessorID":"management"},` + services + `]`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := answer.Load().(string)
		if text == "" {
			http.Error(w, "no leader", http.StatusInternalServerError)
			answer.Store(`[]`)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		Accessor, Method string
		Of, Gone         bool
	}
	var got []change
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	started := time.Now()
	var following sync.WaitGroup
	following.Go(func() {
		followTokens(ctx, client, func(at time.Time, token loginToken, gone bool) {
			got = append(got, change{token.Accessor, token.Method, token.Of("1234") && !token.Of("5678"), gone})
			if gone {
				cancel()
			} else {
				answer.Store("")
			}
			created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			if !gone && !at.Equal(created) {
				t.Errorf("gone %t at %s", gone, at)
			}
			if gone && at.Before(started) {
				t.Errorf("gone %t at %s", gone, at)
			}
		})
	})
	following.Wait()
	want := []change{{"a1", "services", true, false}, {"a1", "services", true, true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
