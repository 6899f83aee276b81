package metadata_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

const protectionPath = "/api/" + appID + "/task-protection/v1/state"

func ask(h http.Handler, method, path, body string) (int, string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}

func TestProtectionEchoes(t *testing.T) {
	t.Parallel()
	m := phases(t)["phase-b-running"]
	m.Facts.HasRole, m.Facts.ServiceName = true, "product-api"
	p := metadata.NewProtections()
	h := metadata.ProtectionHandler(lookup(m), p)
	const off = `{"protection":{"ExpirationDate":null,"ProtectionEnabled":false,"TaskArn":"` + taskARN + `"}}`
	if status, body := ask(h, "GET", protectionPath, ""); status != 200 || body != off {
		t.Fatalf("before: %d %s", status, body)
	}
	before := time.Now()
	status, put := ask(h, "PUT", protectionPath, `{"ProtectionEnabled":true,"ExpiresInMinutes":60}`)
	var answer struct {
		Protection struct {
			ExpirationDate    time.Time
			ProtectionEnabled bool
			TaskArn           string
		} `json:"protection"`
	}
	if err := json.Unmarshal([]byte(put), &answer); err != nil || status != 200 {
		t.Fatalf("put: %d %s", status, put)
	}
	in := answer.Protection.ExpirationDate.Sub(before)
	if !answer.Protection.ProtectionEnabled {
		t.Errorf("put: %s", put)
	}
	testkit.Equal(t, "put: Protection.TaskArn", answer.Protection.TaskArn, taskARN)
	if in < 59*time.Minute || in > 61*time.Minute {
		t.Errorf("put: %s", put)
	}
	if status, body := ask(h, "GET", protectionPath, ""); status != 200 || body != put {
		t.Errorf("get: %d %s, want the same as put: %s", status, body, put)
	}
	if _, ok := p.Until(taskARN, before.Add(61*time.Minute)); ok {
		t.Error("protection does not end")
	}
	if status, body := ask(h, "PUT", protectionPath, `{"ProtectionEnabled":false}`); status != 200 || body != off {
		t.Errorf("put false: %d %s", status, body)
	}
	if _, body := ask(h, "PUT", protectionPath, `{"ProtectionEnabled":true}`); !strings.Contains(body,
		`"ProtectionEnabled":true`) {
		t.Errorf("put without minutes: %s", body)
	}
	if until, _ := p.Until(taskARN, before); until.Sub(before) < 119*time.Minute ||
		until.Sub(before) > 121*time.Minute {
		t.Errorf("default life is %v, want 2 h", until.Sub(before))
	}
}

func TestProtectionErrors(t *testing.T) {
	t.Parallel()
	full := phases(t)["phase-b-running"]
	full.Facts.HasRole, full.Facts.ServiceName = true, "product-api"
	noRole, standalone := full, full
	noRole.Facts.HasRole = false
	standalone.Facts.ServiceName = ""
	for name, c := range map[string]struct {
		snapshot           metadata.Snapshot
		method, path, body string
		status             int
		want               string
	}{
		"unknown field": {full, "PUT", protectionPath, `{"ProtectionEnabled":true,"Extra":1}`, 400,
			`{"error":{"Code":"InvalidParameterException",` +
				`"Message":"UpdateTaskProtection: failed to decode request"}}`},
		"no JSON": {full, "PUT", protectionPath, `yes`, 400,
			`{"error":{"Code":"InvalidParameterException",` +
				`"Message":"UpdateTaskProtection: failed to decode request"}}`},
		"first field missing": {full, "PUT", protectionPath, `{"ExpiresInMinutes":5}`, 400,
			`{"error":{"Arn":"` + taskARN +
				`","Code":"InvalidParameterException","Message":"Invalid request: does not contain ` +
				`'ProtectionEnabled' field"}}`},
		"too long": {full, "PUT", protectionPath, `{"ProtectionEnabled":true,"ExpiresInMinutes":2881}`, 400,
			`{"error":{"Arn":"` + taskARN +
				`","Code":"InvalidParameterException","Message":"expiresInMinutes must be between 1 and 2880"}}`},
		"no role": {noRole, "GET", protectionPath, "", 403,
			`{"error":{"Arn":"` + taskARN +
				`","Code":"AccessDeniedException","Message":"Invalid Request: no task IAM role credentials available ` +
				`for task"}}`},
		"no service": {standalone, "PUT", protectionPath, `{"ProtectionEnabled":true}`, 200,
			`{"failure":{"Arn":"` + taskARN + `","Detail":null,"Reason":"TASK_NOT_VALID"}}`},
		"unknown ID": {full, "GET", "/api/nope/task-protection/v1/state", "", 404,
			`{"error":{"Code":"ResourceNotFoundException","Message":"Failed to find a task for the request"}}`},
		"other path":   {full, "GET", "/api/" + appID + "/fault/v1", "", 404, "404 page not found\n"},
		"other method": {full, "POST", protectionPath, `{}`, 405, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := metadata.ProtectionHandler(lookup(c.snapshot), metadata.NewProtections())
			if status, body := ask(h, c.method, c.path, c.body); status != c.status || body != c.want {
				t.Errorf("%d %s\nwant %d %s", status, body, c.status, c.want)
			}
		})
	}
}
