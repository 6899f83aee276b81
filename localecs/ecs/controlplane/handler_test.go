package controlplane_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const apiAccount = "123456789012"

// echo is an input and an answer with a member of each kind.
type echo struct {
	Text   string       `json:"text,omitzero"`
	Number *int         `json:"number,omitzero"`
	Flag   bool         `json:"flag,omitzero"`
	List   []string     `json:"list,omitzero"`
	Nested []shapes.Tag `json:"nested,omitzero"`
	At     shapes.Time  `json:"at,omitzero"`
	Who    string       `json:"who,omitzero"`
	shapes.PageInput
}

// api is a handler with a few operations, and a user who may call them.
type api struct {
	t       *testing.T
	url     string
	store   *iam.Store
	key     iam.Key
	region  string
	buckets controlplane.Buckets
}

func newAPI(t *testing.T, change func(*api)) *api {
	t.Helper()
	a := &api{t: t, store: iam.NewStore(), region: "us-east-1"}
	a.key = a.store.PutUser(iam.User{Name: "me", Account: apiAccount, Actions: []string{"ecs:*"}})
	if change != nil {
		change(a)
	}
	server := httptest.NewServer(controlplane.NewHandler(controlplane.HandlerOptions{
		Store: a.store, Region: "us-east-1", Buckets: a.buckets, Log: hclog.NewNullLogger(),
		Operations: map[string]controlplane.Operation{
			"Echo": controlplane.Op(func(c shapes.Call, in echo) (echo, error) {
				in.Who = c.Principal
				return in, nil
			}),
			"Conflict": controlplane.Op(func(shapes.Call, shapes.Empty) (shapes.Empty, error) {
				return shapes.Empty{}, &shapes.Error{
					Code: shapes.ConflictException, Message: "Taken.", ResourceIDs: []string{"a"},
				}
			}),
			"Break": controlplane.Op(func(shapes.Call, shapes.Empty) (shapes.Empty, error) {
				return shapes.Empty{}, io.ErrUnexpectedEOF
			}),
			"DescribeTasks": controlplane.Op(func(shapes.Call, shapes.Empty) (shapes.Empty, error) {
				return shapes.Empty{}, nil
			}),
			"ListTasks": controlplane.Op(func(shapes.Call, shapes.Empty) (shapes.Empty, error) {
				return shapes.Empty{}, nil
			}),
			"DescribeCluster": nil,
		},
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// call calls an operation; sign changes the request before it is signed, and may
// be nil.
func (a *api) call(operation, body string, sign func(*http.Request)) (status int, header http.Header, answer string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	if sign != nil {
		sign(req)
	}
	sum := sha256.Sum256([]byte(body))
	credentials := aws.Credentials{
		AccessKeyID: a.key.AccessKeyID, SecretAccessKey: a.key.Secret, SessionToken: a.key.Token,
	}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, req, hex.EncodeToString(sum[:]), "ecs",
		a.region, time.Now()); err != nil {
		a.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// want calls and compares status and body.
func (a *api) want(operation, body string, status int, answer string) {
	a.t.Helper()
	gotStatus, header, got := a.call(operation, body, nil)
	if gotStatus != status || got != answer {
		a.t.Errorf("%s %s:\ngot  %d %s\nwant %d %s", operation, body, gotStatus, got, status, answer)
	}
	if header.Get("Content-Type") != "application/x-amz-json-1.1" || header.Get("X-Amzn-Requestid") == "" {
		a.t.Errorf("%s: header %v", operation, header)
	}
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	const who = `"who":"arn:aws:iam::123456789012:user/me"`
	a.want("Echo", `{"text": "<a&b>", "number": 7, "flag": true, "list": ["x"], "nested": [{"key": "k", "value": `+
		`"v"}], "at": 1772467721.102, "nextToken": "n"}`,
		200, `{"text":"<a&b>","number":7,"flag":true,"list":["x"],"nested":[{"key":"k","value":"v"}],`+
			`"at":1772467721.102,`+who+`,"nextToken":"n","maxResults":null}`)
	for _, body := range []string{"", "  ", "{}", `{"text": null}`,
		`{"Text": "x", "unknown": {"a": 1}, "nested": null}`} {
		a.want("Echo", body, 200, `{`+who+`,"nextToken":"","maxResults":null}`)
	}
	a.want("Echo", `{"nested": [{"Key": "k", "value": "v", "more": []}]}`, 200,
		`{"nested":[{"value":"v"}],`+who+`,"nextToken":"","maxResults":null}`)
	a.want("Conflict", "{}", 400, `{"__type":"ConflictException","message":"Taken.","resourceIds":["a"]}`)
	a.want("Break", "{}", 500, `{"__type":"ServerException","message":"unexpected EOF"}`)
	a.want("Nothing", "{}", 400, unknown("Nothing"))
	a.want("DescribeCluster", "{}", 400, unknown("DescribeCluster"))
	a.want("echo", "{}", 400, unknown("echo"))
}

func unknown(operation string) string {
	return `{"__type":"UnknownOperationException",` +
		`"message":"localecs does not have the operation \"` + operation + `\"."}`
}

func TestWrongTypes(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for body, want := range map[string]string{
		`{`:                        "The request is not valid JSON.",
		`{} {}`:                    "The request is not valid JSON.",
		`[]`:                       "Start of list found where not expected.",
		`"x"`:                      "Unexpected field type",
		`{"text": 1}`:              "NUMBER_VALUE can not be converted to a String at text",
		`{"text": true}`:           "BOOLEAN_VALUE can not be converted to a String at text",
		`{"number": "1"}`:          "STRING_VALUE can not be converted to an Integer at number",
		`{"maxResults": "x"}`:      "STRING_VALUE can not be converted to an Integer at maxResults",
		`{"number": 1.5}`:          "NUMBER_VALUE can not be converted to an Integer at number",
		`{"flag": "true"}`:         "STRING_VALUE can not be converted to a Boolean at flag",
		`{"text": {"a": 1}}`:       "Start of structure or map found where not expected at text.",
		`{"nested": [[]]}`:         "Start of list found where not expected at nested.",
		`{"nested": [{"key": 1}]}`: "NUMBER_VALUE can not be converted to a String at nested.key",
		`{"at": "now"}`:            `want epoch seconds, got "now"`,
	} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		a.want("Echo", body, 400, `{"__type":"SerializationException","message":`+string(text)+`}`)
	}
	status, _, answer := a.call("Echo", strings.Repeat(" ", 1<<20+1), nil)
	if status != 400 || answer != `{"__type":"SerializationException","message":"The request cannot be read."}` {
		t.Errorf("too long: %d %s", status, answer)
	}
}

func TestCallersAreVerified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   string
		change func(*api)
	}{
		{"UnrecognizedClientException The security token included in the request is invalid.", func(a *api) {
			a.key.AccessKeyID = "AKIANOBODY"
		}},
		{"InvalidSignatureException The request signature we calculated does not match the signature you provided. " +
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
			func(a *api) {
				a.key.Secret = "x"
			}},
		{"InvalidSignatureException Credential should be scoped to a valid region, not 'eu-west-1'. ", func(a *api) {
			a.region = "eu-west-1"
		}},
		{"AccessDeniedException User: arn:aws:iam::123456789012:user/you is not authorized to perform: ecs:Echo " +
			"because no identity-based policy allows the ecs:Echo action", func(a *api) {
			a.key = a.store.PutUser(iam.User{Name: "you", Account: apiAccount, Actions: []string{"ecs:List*", "sts:*"}})
		}},
		{"AccessDeniedException User: arn:aws:sts::123456789012:assumed-role/task/t is not authorized to perform: " +
			"ecs:Echo because no identity-based policy allows the ecs:Echo action", func(a *api) {
			a.session(nil)
		}},
	} {
		a := newAPI(t, c.change)
		status, _, answer := a.call("Echo", "{}", nil)
		var got struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		err := json.Unmarshal([]byte(answer), &got)
		if err != nil {
			t.Fatalf("%d %s %s, want %s", status, got.Type, got.Message, c.want)
		}
		testkit.Equal(t, "status", status, 400)
		testkit.Equal(t, `got.Type+" "+got.Message`, got.Type+" "+got.Message, c.want)
	}
	a := newAPI(t, func(a *api) { a.session([]string{"ecs:E?ho"}) })
	if status, _, answer := a.call("Echo", "{}", nil); status != 200 ||
		!strings.Contains(answer, "assumed-role/task/t") {
		t.Errorf("a role that may: %d %s", status, answer)
	}
	res, err := http.Post(a.url, "application/x-amz-json-1.1", bytes.NewReader([]byte("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("unsigned: %d %s, %v", res.StatusCode, text, err)
	}
	testkit.Equal(t, "unsigned: StatusCode", res.StatusCode, 400)
	if !strings.Contains(string(text), "MissingAuthenticationTokenException") {
		t.Errorf("unsigned: %d %s, %v", res.StatusCode, text, err)
	}
}

// session makes the caller a session of a role.
func (a *api) session(actions []string) {
	role := iam.Role{Name: "task", Account: apiAccount, Actions: actions}
	a.store.PutRole(role)
	id, err := a.store.Issue(role.ARN(), "t", time.Now())
	if err == nil {
		a.key, err = a.store.Current(id)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestCallsAreThrottledByBucket(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(a *api) { a.buckets = controlplane.NewBuckets() })
	answers := map[string]int{}
	begin := time.Now()
	for i := range 220 {
		_, _, answer := a.call([]string{"DescribeTasks", "ListTasks"}[i%2], "{}", nil)
		answers[answer]++
	}
	// 100 at once, and 20 more in each second that the calls took.
	most := 100 + int(20*time.Since(begin).Seconds()) + 1
	if ok := answers["{}"]; ok < 100 || ok > most {
		t.Errorf("%d calls passed, at most %d should", ok, most)
	}
	for answer := range answers {
		if answer != "{}" && answer != `{"__type":"ThrottlingException","message":"Rate exceeded"}` {
			t.Errorf("answered %s", answer)
		}
	}
	if status, _, _ := a.call("Echo", "{}", nil); status != 200 {
		t.Error("what has no bucket is throttled")
	}
}

func TestOnlyRequestsWithItsTargetAreWanted(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if controlplane.IsECSRequest(r) {
		t.Error("wants a request without a target")
	}
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListTasks")
	if !controlplane.IsECSRequest(r) {
		t.Error("does not want its own")
	}
}

// TestOperations lists what is served, as docs/localecs/ecs-api.md does.
func TestOperations(t *testing.T) {
	t.Parallel()
	p := controlplane.New(controlplane.Options{Account: shapes.Account{Region: "us-east-1", ID: apiAccount}})
	operations := controlplane.Operations(p)
	page, err := os.ReadFile("../../../docs/localecs/ecs-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Operation | Like AWS's | Not |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "| all others |")
	var listed []string
	for row := range strings.Lines(table) {
		listed = append(listed, strings.Split(strings.TrimSpace(strings.Split(row, "|")[1]), ", ")...)
	}
	slices.Sort(listed)
	if d := cmp.Diff(slices.Sorted(maps.Keys(operations)), listed); d != "" {
		t.Errorf("operations in ecs-api.md (-served +listed):\n%s", d)
	}
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		_, err := operations[name](shapes.Call{Now: time.Now()},
			[]byte(`{"cluster": 1, "family": 1, "clusters": 1, "nextToken": 1, "resourceArn": 1, "taskDefinition": `+
				`1, "taskDefinitions": 1, "familyPrefix": 1, "clusterName": 1, "serviceDeploymentArns": 1, `+
				`"serviceRevisionArns": 1}`))
		if err == nil || !strings.HasPrefix(err.Error(), "SerializationException: ") {
			t.Errorf("%s takes anything: %v", name, err)
		}
	}
	out, err := operations["ListClusters"](shapes.Call{Now: time.Now()}, nil)
	text, _ := json.Marshal(out)
	if d := cmp.Diff(`{"clusterArns":["arn:aws:ecs:us-east-1:123456789012:cluster/default"]}`,
		string(text)); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"text": 1}`, `{"nested": [{"key": "a"}]}`, "[", `{"at": 1}`} {
		f.Add([]byte(seed))
	}
	op := controlplane.Op(func(_ shapes.Call, in echo) (echo, error) { return in, nil })
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := op(shapes.Call{}, body); err != nil {
			if _, known := err.(*shapes.Error); !known {
				t.Error(fmt.Errorf("%q: %w", body, err))
			}
		}
	})
}
