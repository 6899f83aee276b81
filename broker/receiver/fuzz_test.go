package receiver

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzPush posts any body to the callback port of a task that waits for its token. The
// answer is a refusal that redeems nothing, and the task's own push works after it.
func FuzzPush(f *testing.F) {
	f.Add([]byte(`{"token":"hpke1.AAAA.AAAA","ttl":120,"creation_time":"2026-11-21T06:40:00.1Z","wrapped_accessor":"a","request_id":"r1","nonce":"AAAAAAAAAAAAAAAAAAAAAA=="}`))
	f.Add([]byte(`{"token":"x","ttl":120,"creation_time":"2026-11-21T06:40:00.1Z","wrapped_accessor":"a"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t)
			defer w.close()
			g, result := w.pending(t)
			got, err := w.post(body)
			if err != nil {
				t.Error(err)
			}
			if got != http.StatusBadRequest && got != http.StatusForbidden {
				t.Errorf("answered %d, want 400 or 403", got)
			}
			if w.called("POST /v1/unwrap") != 0 {
				t.Error("a foreign push caused a redemption")
			}
			if got := w.answers(t, w.push(g)); got != http.StatusOK {
				t.Errorf("the task's own push was answered %d", got)
			}
			<-result
		})
	})
}

// FuzzRecordFile takes over any files of an earlier run, or removes them: a token is taken
// over with its own record only.
func FuzzRecordFile(f *testing.F) {
	f.Add([]byte("s"),
		[]byte(`{"task_arn":"`+taskARN+
			`","sha256":"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89","expires":"2100-01-01T00:00:00Z"}`))
	f.Add([]byte("s"),
		[]byte(`{"task_arn":"`+taskARN+
			`","sha256":"x","previous":{"sha256":"043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89"}}`))
	f.Add([]byte(""), []byte(`null`))
	f.Fuzz(func(t *testing.T, token, record []byte) {
		path := filepath.Join(t.TempDir(), "token")
		for name, data := range map[string][]byte{path: token, path + ".json": record} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := files{path: path}.read(taskARN)
		_, absent := os.Stat(path)
		switch {
		case err != nil, !got.secret.Empty() && (got.TaskARN != taskARN || got.SHA256 != hash(got.secret) ||
			absent != nil):
			t.Errorf("%+v, %v, %v", got, err, absent)
		case got.secret.Empty() && absent == nil:
			t.Error("the files of another run are left")
		}
		got.valid(time.Now())
	})
}
