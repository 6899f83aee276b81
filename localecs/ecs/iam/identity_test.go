package iam_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const taskID = "0f9de17a6465404e8b1b2356dc13c2f8"

func TestPrincipals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role         iam.Role
		arn, session string
		userID       string
	}{
		{
			iam.Role{Name: "task", Path: "/consul-ecs/", Account: "111122223333"},
			"arn:aws:iam::111122223333:role/consul-ecs/task",
			"arn:aws:sts::111122223333:assumed-role/task/" + taskID,
			"AROACF3UH7OVHUP3EHQHO:" + taskID,
		},
		{
			iam.Role{Name: "task", Path: "a/b", Account: "111122223333", Partition: "aws-cn"},
			"arn:aws-cn:iam::111122223333:role/a/b/task",
			"arn:aws-cn:sts::111122223333:assumed-role/task/" + taskID,
			"AROACF3UH7OVHUP3EHQHO:" + taskID,
		},
		{
			iam.Role{Name: "task", Account: "444455556666", Partition: "aws-us-gov"},
			"arn:aws-us-gov:iam::444455556666:role/task",
			"arn:aws-us-gov:sts::444455556666:assumed-role/task/" + taskID,
			"AROACK3U7OXXH2WH3EBIC:" + taskID,
		},
	} {
		want := iam.Principal{ARN: c.session, UserID: c.userID, Account: c.role.Account}
		if diff := cmp.Diff(want, c.role.Session(taskID)); diff != "" || c.role.ARN() != c.arn {
			t.Errorf("ARN %s, want %s; session (-want +got):\n%s", c.role.ARN(), c.arn, diff)
		}
	}
	user := iam.User{Name: "ann", Account: "111122223333"}
	if got := user.ARN(); got != "arn:aws:iam::111122223333:user/ann" {
		t.Errorf("user ARN %s", got)
	}
}

func TestUniqueIDsAreStableAndDiffer(t *testing.T) {
	t.Parallel()
	role := iam.Role{Name: "task", Account: "111122223333"}
	other := iam.Role{Name: "task", Account: "444455556666"}
	user := iam.User{Name: "task", Account: "111122223333"}
	if role.UniqueID() != "AROACF3UH7OVHUP3EHQHO" {
		t.Errorf("ID %s changed between builds", role.UniqueID())
	}
	if role.UniqueID() == other.UniqueID() || role.UniqueID()[4:] == user.UniqueID()[4:] {
		t.Error("two principals share an ID")
	}
	if !regexp.MustCompile(`^AIDA[A-Z2-7]{17}$`).MatchString(user.UniqueID()) {
		t.Errorf("user ID %s", user.UniqueID())
	}
}

func newStore(t *testing.T) (*iam.Store, iam.Role) {
	t.Helper()
	s := iam.NewStore()
	role := iam.Role{Name: "task", Path: "/consul-ecs/", Account: "111122223333"}
	s.PutRole(role)
	return s, role
}

func get(t *testing.T, s *iam.Store, path string) (int, map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	iam.Handler(s).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	if ct := rec.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("%s: Content-Type %q", path, ct)
	}
	var body map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v in %s", path, err, rec.Body)
	}
	return rec.Code, body
}

func TestCredentialsRotateInPlace(t *testing.T) {
	t.Parallel()
	s, role := newStore(t)
	start := time.Date(2026, 3, 2, 17, 8, 41, 102337458, time.UTC)
	id, err := s.Issue(role.ARN(), taskID, start)
	if err != nil {
		t.Fatal(err)
	}
	path := iam.RelativeURI(id)
	if !regexp.MustCompile(`^/v2/credentials/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(path) {
		t.Errorf("path %s", path)
	}
	status, first := get(t, s, path)
	testkit.Equal(t, "status", status, http.StatusOK)
	if len(first) != 5 {
		t.Fatalf("%d %v", status, first)
	}
	testkit.Equal(t, `first["RoleArn"]`, first["RoleArn"], "arn:aws:iam::111122223333:role/consul-ecs/task")
	testkit.Equal(t, `first["Expiration"]`, first["Expiration"], "2026-03-02T23:08:41Z")
	key, err := s.Current(id)
	if err != nil {
		t.Fatalf("served %v, stored %+v, %v", first, key, err)
	}
	testkit.Equal[any](t, `first["AccessKeyId"]`, first["AccessKeyId"], key.AccessKeyID)
	testkit.Equal[any](t, `first["SecretAccessKey"]`, first["SecretAccessKey"], key.Secret)
	testkit.Equal[any](t, `first["Token"]`, first["Token"], key.Token)
	if !regexp.MustCompile(`^ASIA[A-Z2-7]{16}$`).MatchString(key.AccessKeyID) {
		t.Errorf("key %+v", key)
	}
	testkit.Equal(t, "len(key.Secret)", len(key.Secret), 40)
	if len(key.Token) < 300 {
		t.Errorf("key %+v", key)
	}

	later := start.Add(5 * time.Hour)
	if err := s.Rotate(id, later); err != nil {
		t.Fatal(err)
	}
	_, second := get(t, s, path)
	if second["AccessKeyId"] == first["AccessKeyId"] || second["SecretAccessKey"] == first["SecretAccessKey"] {
		t.Errorf("after rotation %v, before %v", second, first)
	}
	testkit.Equal(t, `second["Expiration"]`, second["Expiration"], "2026-03-03T04:08:41Z")
	old, ok := s.Key(key.AccessKeyID)
	if !ok || old.Expired(start.Add(6*time.Hour-2*time.Second)) {
		t.Errorf("the old key lives until its own end: %v %+v", ok, old)
	}
	if !old.Expired(start.Add(6 * time.Hour)) {
		t.Errorf("the old key lives until its own end: %v %+v", ok, old)
	}
	// A day after its end it is not known.
	if err := s.Rotate(id, start.Add(31*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Key(key.AccessKeyID); ok {
		t.Error("a key is kept for ever")
	}
}

func TestCredentialsErrors(t *testing.T) {
	t.Parallel()
	s, role := newStore(t)
	removed, err := s.Issue(role.ARN(), taskID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, _ := s.Current(removed)
	s.Remove(removed)
	if _, ok := s.Key(key.AccessKeyID); !ok {
		t.Error("removal revoked the key")
	}
	for _, c := range []struct {
		path, code, message string
		status              int
	}{
		{"/v2/credentials/", "NoIdInRequest", "CredentialsV2Request: No Credential ID in the request", 400},
		{"/v2/credentials/nope", "InvalidIdInRequest", "CredentialsV2Request: Credentials not found", 400},
		{"/v2/credentials/" + removed, "InvalidIdInRequest", "CredentialsV2Request: Credentials not found", 400},
	} {
		status, body := get(t, s, c.path)
		want := map[string]any{"code": c.code, "message": c.message, "HTTPErrorCode": float64(c.status)}
		if diff := cmp.Diff(want, body); diff != "" || status != c.status {
			t.Errorf("%s: %d, (-want +got):\n%s", c.path, status, diff)
		}
	}
	if err := s.Rotate(removed, time.Now()); !errors.Is(err, iam.ErrUnknownID) {
		t.Errorf("rotation of a removed ID: %v", err)
	}
	if _, err := s.Issue("arn:aws:iam::111122223333:role/nope", taskID, time.Now()); err == nil {
		t.Error("an unknown role was assumed")
	}
}

// The SDK's own provider, which a task uses, reads the answer.
func TestSDKReadsCredentials(t *testing.T) {
	t.Parallel()
	s, role := newStore(t)
	id, err := s.Issue(role.ARN(), taskID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(iam.Handler(s))
	defer srv.Close()
	got, err := endpointcreds.New(srv.URL + iam.RelativeURI(id)).Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.Current(id)
	testkit.Equal(t, "AccessKeyID", got.AccessKeyID, want.AccessKeyID)
	testkit.Equal(t, "SecretAccessKey", got.SecretAccessKey, want.Secret)
	testkit.Equal(t, "SessionToken", got.SessionToken, want.Token)
	if !got.CanExpire || !got.Expires.Equal(want.Expires) {
		t.Errorf("SDK read %+v, want %+v", got, want)
	}
}

// A task with a role is a session of it, named after the task.
func Example() {
	store := iam.NewStore()
	role := iam.Role{
		Name: "product-api-task", Path: "/consul-ecs/", Account: "111122223333",
		Tags: map[string]string{"consul.hashicorp.com.service-name": "product-api"},
	}
	store.PutRole(role)
	id, err := store.Issue(role.ARN(), taskID, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	// The container's environment gets
	// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=identity.RelativeURI(id).
	key, _ := store.Current(id)
	fmt.Println(role.ARN())
	fmt.Println(key.Principal.ARN)
	fmt.Println(key.Principal.UserID)
	// Output:
	// arn:aws:iam::111122223333:role/consul-ecs/product-api-task
	// arn:aws:sts::111122223333:assumed-role/product-api-task/0f9de17a6465404e8b1b2356dc13c2f8
	// AROAVJGMXDVTUYNPF47SN:0f9de17a6465404e8b1b2356dc13c2f8
}

func TestRolesAreARNsOrNames(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"arn:aws:iam::1:role/web":        "arn:aws:iam::1:role/web",
		"arn:aws-cn:iam::1:role/a/b/web": "arn:aws-cn:iam::1:role/a/b/web",
		"web":                            "arn:aws:iam::9:role/web",
		"a/web":                          "arn:aws:iam::9:role/a/web",
		"/a/web":                         "arn:aws:iam::9:role/a/web",
	} {
		if got := iam.RoleOf(reference, shapes.Account{Region: "us-east-1", ID: "9"}).ARN(); got != want {
			t.Errorf("%s: got %s, want %s", reference, got, want)
		}
	}
}

func TestNamesAreOfTheRegionsPartition(t *testing.T) {
	t.Parallel()
	account := shapes.Account{Region: "us-gov-east-1", ID: "9"}
	if got := iam.RoleOf("a/web", account).ARN(); got != "arn:aws-us-gov:iam::9:role/a/web" {
		t.Errorf("role %s", got)
	}
	if got := iam.Admin("me", account).ARN(); got != "arn:aws-us-gov:iam::9:user/me" {
		t.Errorf("user %s", got)
	}
}
