package awstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Role is the role whose credentials the fake hands out.
type Role struct {
	// Account, Path ("/consul-ecs/") and Name make the ARN.
	Account, Path, Name string
	Tags                map[string]string
}

// ARN returns the role's ARN, with its path.
func (r Role) ARN() string {
	return fmt.Sprintf("arn:aws:iam::%s:role%s%s", r.Account, r.Path, r.Name)
}

// SessionARN returns what GetCallerIdentity calls the task that has the role.
func (r Role) SessionARN() string {
	return fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/task", r.Account, r.Name)
}

// Request is one request that reached the fake.
type Request struct {
	// Host is the Host header, which the signature covers.
	Method, Host, Path, Action string
	Header                     http.Header
	Form                       url.Values
}

// AWS is the fake. Its URL is STS, IAM and the credentials endpoint in one.
type AWS struct {
	URL  string
	Role Role

	server   *httptest.Server
	mu       sync.Mutex
	requests []Request
}

// New starts the fake and stops it with the test.
func New(t testing.TB, role Role) *AWS {
	t.Helper()
	a := Start(role)
	t.Cleanup(a.Stop)
	return a
}

// Start starts the fake, for TestMain.
func Start(role Role) *AWS {
	a := &AWS{Role: role}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.URL = a.server.URL
	return a
}

// Stop ends it.
func (a *AWS) Stop() { a.server.Close() }

// CredentialsURI returns a value for AWS_CONTAINER_CREDENTIALS_FULL_URI.
func (a *AWS) CredentialsURI() string { return a.URL + "/creds" }

// Requests returns the requests so far, in order.
func (a *AWS) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Request(nil), a.requests...)
}

// Actions returns the API actions so far, "credentials" for the endpoint of that name.
func (a *AWS) Actions() []string {
	var actions []string
	for _, r := range a.Requests() {
		actions = append(actions, r.Action)
	}
	return actions
}

func (a *AWS) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	req := Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, Action: form.Get("Action"),
		Header: r.Header.Clone(), Form: form,
	}
	if r.URL.Path == "/creds" {
		req.Action = "credentials"
	}
	a.mu.Lock()
	a.requests = append(a.requests, req)
	a.mu.Unlock()
	switch req.Action {
	case "credentials":
		a.credentials(w)
	case "GetCallerIdentity":
		answer(w,
			fmt.Sprintf(`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">`+
				`<GetCallerIdentityResult><Arn>%s</Arn><UserId>AROAEXAMPLE:task</UserId><Account>%s</Account>`+
				`</GetCallerIdentityResult></GetCallerIdentityResponse>`,
				a.Role.SessionARN(), a.Role.Account))
	case "GetRole":
		a.getRole(w, form.Get("RoleName"))
	default:
		w.WriteHeader(http.StatusBadRequest)
		answer(w,
			`<ErrorResponse><Error><Code>InvalidAction</Code><Message>no such action</Message></Error></ErrorResponse>`)
	}
}

func (a *AWS) credentials(w http.ResponseWriter) {
	json.NewEncoder(w).Encode(map[string]string{
		"RoleArn":         a.Role.ARN(),
		"AccessKeyId":     "ASIAEXAMPLE",
		"SecretAccessKey": "secret",
		"Token":           "session-token",
		"Expiration":      time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
}

func (a *AWS) getRole(w http.ResponseWriter, name string) {
	if name != a.Role.Name {
		w.WriteHeader(http.StatusNotFound)
		answer(w,
			`<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>no such role</Message></Error></ErrorResponse>`)
		return
	}
	var tags strings.Builder
	for k, v := range a.Role.Tags {
		fmt.Fprintf(&tags, "<member><Key>%s</Key><Value>%s</Value></member>", k, v)
	}
	answer(w, fmt.Sprintf(`<GetRoleResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><GetRoleResult><Role>`+
		`<Path>%s</Path><Arn>%s</Arn><RoleName>%s</RoleName><RoleId>AROAEXAMPLE</RoleId>`+
		`<Tags>%s</Tags></Role></GetRoleResult></GetRoleResponse>`,
		a.Role.Path, a.Role.ARN(), a.Role.Name, tags.String()))
}

func answer(w http.ResponseWriter, xml string) {
	w.Header().Set("Content-Type", "text/xml")
	io.WriteString(w, xml)
}
