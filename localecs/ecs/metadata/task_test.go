package metadata_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text+" "+r.URL.Path) })
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	h := metadata.TaskHandler(metadata.Task{Metadata: says("metadata"), Credentials: says("credentials")})
	for _, c := range []struct {
		path             string
		status           int
		location, answer string
	}{
		{"/v4/a/task", 200, "", "metadata /v4/a/task"},
		{"/v3/a", 200, "", "metadata /v3/a"},
		{"/v2/credentials/x", 200, "", "credentials /v2/credentials/x"},
		{"/v4/a/", 200, "", "metadata /v4/a/"}, // which has no route there
		{"/api/a/task-protection/v1/state", 404, "", "404 page not found\n"},
		{"/", 404, "", "404 page not found\n"},
		{"//v4/a", 301, "/v4/a", ""},
		{"/v4//a//task", 301, "/v4/a/task", ""},
		{"/v4/a//", 301, "/v4/a/", ""},
		{"/v4/b/../a/task?x=1", 301, "/v4/a/task?x=1", ""},
	} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "http://169.254.170.2"+c.path, nil)
		h.ServeHTTP(rec, req)
		testkit.Equal(t, c.path+": Code", rec.Code, c.status)
		testkit.Equal(t, c.path+": Header().Get(\"Location\")", rec.Header().Get("Location"), c.location)
		testkit.Equal(t, c.path+": Body.String()", rec.Body.String(), c.answer)
	}
}

// Over a real connection.
func TestRateLimit200SimultaneousGETs(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(metadata.TaskHandler(metadata.Task{Metadata: says("ok")}))
	defer srv.Close()
	var mu sync.Mutex
	count := map[int]int{}
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			resp, err := srv.Client().Get(srv.URL + "/v4/a/task")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == http.StatusTooManyRequests {
				checkRefusal(t, resp.Header, string(body))
			}
			mu.Lock()
			count[resp.StatusCode]++
			mu.Unlock()
		})
	}
	wg.Wait()
	// A slow machine gets more through; TestRefusal has the exact number.
	if count[200] < 60 || count[200]+count[429] != 200 {
		t.Errorf("answers by status %v, want at least 60 of 200 and the rest 429", count)
	}
	resp, err := srv.Client().Get(srv.URL + "/v4/a/stats")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("another path shares the bucket: %d", resp.StatusCode)
	}
}

func checkRefusal(t *testing.T, h http.Header, body string) {
	t.Helper()
	testkit.Equal(t, "body", body, "You have reached maximum request limit.")
	testkit.Equal(t, `Get("Content-Type")`, h.Get("Content-Type"), "text/plain")
	testkit.Equal(t, `Get("X-Rate-Limit-Limit")`, h.Get("X-Rate-Limit-Limit"), "40.00")
	testkit.Equal(t, `Get("X-Rate-Limit-Duration")`, h.Get("X-Rate-Limit-Duration"), "1")
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // so that no token comes back meanwhile
		h := metadata.TaskHandler(metadata.Task{Metadata: says("ok")})
		for i := 1; i <= 62; i++ {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v4/a/task", nil))
			want := http.StatusOK
			if i > 60 {
				want = http.StatusTooManyRequests
				checkRefusal(t, rec.Header(), rec.Body.String())
			}
			if rec.Code != want {
				t.Errorf("request %d: %d, want %d", i, rec.Code, want)
			}
		}
	})
}
