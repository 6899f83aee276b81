package iam_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// awsError is an error as AWS's clients read it.
type awsError struct {
	XMLName xml.Name
	Type    string `xml:"Error>Type"`
	Code    string `xml:"Error>Code"`
	Message string `xml:"Error>Message"`
}

// do sends the request to the handler over a real connection.
func do(t testing.TB, h http.Handler, req *http.Request) (int, string) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	// The request keeps its signed Host, whatever the server's address.
	if req.Host == "" {
		req.Host = req.URL.Host
	}
	req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(srv.URL, "http://")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/xml" {
		t.Errorf("Content-Type %q, Consul wants text/xml", ct)
	}
	return resp.StatusCode, string(body)
}

func newHandler(t testing.TB) (http.Handler, *iam.Store, iam.Key) {
	t.Helper()
	store := iam.NewStore()
	return iam.New(store, region), store, issue(t, store, productAPI(), time.Now())
}

func TestSDKCallsGetCallerIdentity(t *testing.T) {
	t.Parallel()
	h, _, key := newHandler(t)
	srv := httptest.NewServer(h)
	defer srv.Close()
	out, err := sts.New(sts.Options{
		Region: region, BaseEndpoint: aws.String(srv.URL),
		Credentials: credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.Secret, key.Token),
	}).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	got := iam.Principal{
		ARN: aws.ToString(out.Arn), UserID: aws.ToString(out.UserId), Account: aws.ToString(out.Account),
	}
	want := iam.Principal{
		ARN:     "arn:aws:sts::111122223333:assumed-role/product-api-task/" + signerTaskID,
		UserID:  productAPI().UniqueID() + ":" + signerTaskID,
		Account: account,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Requests that differ in form and are all right.
func TestSignatureAccepted(t *testing.T) {
	t.Parallel()
	h, store, key := newHandler(t)
	user := store.PutUser(iam.User{Name: "ann", Account: account})
	for name, build := range map[string]func() *http.Request{
		"POST form": func() *http.Request {
			return sign(t, post(t, "https://sts.us-west-2.amazonaws.com/", whoAmI), whoAmI, key, "sts", region,
				time.Now())
		},
		"global region": func() *http.Request {
			return sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, key, "sts", "us-east-1", time.Now())
		},
		"GET query": func() *http.Request {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://sts.amazonaws.com/?"+whoAmI, nil)
			return sign(t, req, "", key, "sts", region, time.Now())
		},
		"14 minutes late": func() *http.Request {
			return sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, key, "sts", region,
				time.Now().Add(-14*time.Minute))
		},
		"14 minutes early": func() *http.Request {
			return sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, key, "sts", region,
				time.Now().Add(14*time.Minute))
		},
		"signed extra header with spaces": func() *http.Request {
			req := post(t, "https://sts.amazonaws.com/", whoAmI)
			req.Header.Set("X-Consul-IAM-ServerID", "  a   b ")
			return sign(t, req, whoAmI, key, "sts", region, time.Now())
		},
		"unsigned header added on the way": func() *http.Request {
			req := sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, key, "sts", region, time.Now())
			req.Header.Set("User-Agent", "relay")
			req.Header.Set("Via", "1.1 relay")
			return req
		},
		"user without session token": func() *http.Request {
			return sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, user, "sts", region, time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, body := do(t, h, build()); status != http.StatusOK ||
				!strings.Contains(body, "<Account>111122223333</Account>") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestBothKeysAreValidAfterRotation(t *testing.T) {
	t.Parallel()
	store := iam.NewStore()
	h := iam.New(store, region)
	store.PutRole(productAPI())
	id, err := store.Issue(productAPI().ARN(), signerTaskID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before, _ := store.Current(id)
	if err := store.Rotate(id, time.Now()); err != nil {
		t.Fatal(err)
	}
	after, _ := store.Current(id)
	store.Remove(id)
	for name, key := range map[string]iam.Key{"before": before, "after": after} {
		req := sign(t, post(t, "https://sts.amazonaws.com/", whoAmI), whoAmI, key, "sts", region, time.Now())
		if status, body := do(t, h, req); status != http.StatusOK {
			t.Errorf("key from %s the rotation: %d %s", name, status, body)
		}
	}
}

// refusal is one way to break a request, and what AWS says to it.
type refusal struct {
	name          string
	breakIt       func(*http.Request, *signing)
	after         func(*http.Request)
	status        int
	code, message string
}

// signing is what a request is signed with.
type signing struct {
	key             iam.Key
	service, region string
	at              time.Time
	form            string
}

func authorization(from, to string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), from, to, 1))
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func body(form string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
	}
}

const calculated = "The request signature we calculated does not match"

func refusals(expired, user iam.Key) []refusal {
	return []refusal{
		{name: "no signature", after: func(r *http.Request) {
			r.Header.Del("Authorization")
		}, status: 403, code: "MissingAuthenticationToken", message: "Request is missing Authentication Token"},
		{name: "two signatures", after: func(r *http.Request) {
			r.Header.Add("Authorization", r.Header.Get("Authorization"))
		}, status: 400, code: "IncompleteSignature"},
		{name: "other algorithm", after: authorization("AWS4-HMAC-SHA256", "AWS3"), status: 400,
			code: "IncompleteSignature", message: "Unsupported AWS 'algorithm': 'AWS3'."},
		{name: "bearer scheme", after: header("Authorization", "Bearer x"), status: 400, code: "IncompleteSignature"},
		{name: "no signature parameter", after: authorization("Signature=", "Signatur="), status: 400,
			code: "IncompleteSignature", message: "requires 'Signature' parameter"},
		{name: "no equal sign", after: authorization("SignedHeaders=", "SignedHeaders"), status: 400,
			code: "IncompleteSignature", message: "missing equal-sign"},
		{name: "parameter twice", after: authorization("SignedHeaders=", "Credential=a, SignedHeaders="), status: 400,
			code: "IncompleteSignature"},
		{name: "short scope", after: authorization("/aws4_request", ""), status: 400, code: "IncompleteSignature",
			message: "exactly 5 slash-delimited elements"},
		{name: "terminator", after: authorization("aws4_request", "aws5_request"), status: 403,
			code: "SignatureDoesNotMatch", message: "valid terminator"},
		{name: "no date", after: func(r *http.Request) {
			r.Header.Del("X-Amz-Date")
		}, status: 400, code: "IncompleteSignature", message: "requires existence of either"},
		{name: "date in another format", after: header("X-Amz-Date", "Mon, 02 Mar 2026 17:08:41 GMT"), status: 400,
			code: "IncompleteSignature", message: "ISO-8601 'basic format'"},
		{name: "date of another day than the scope's", breakIt: func(_ *http.Request, s *signing) {
			s.at = s.at.AddDate(0, 0, -3)
		},
			after: header("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z")), status: 403,
			code: "SignatureDoesNotMatch", message: "Date in Credential scope does not match"},
		{name: "too late", breakIt: func(_ *http.Request, s *signing) {
			s.at = s.at.Add(-15*time.Minute - time.Second)
		}, status: 403, code: "SignatureDoesNotMatch", message: "Signature expired: "},
		{name: "too early", breakIt: func(_ *http.Request, s *signing) {
			s.at = s.at.Add(15*time.Minute + 30*time.Second)
		}, status: 403, code: "SignatureDoesNotMatch", message: "Signature not yet current: "},
		{name: "other service", breakIt: func(_ *http.Request, s *signing) {
			s.service = "ecs"
		}, status: 403, code: "SignatureDoesNotMatch", message: "scoped to correct service"},
		{name: "other region", breakIt: func(_ *http.Request, s *signing) {
			s.region = "eu-west-1"
		}, status: 403, code: "SignatureDoesNotMatch", message: "valid region, not 'eu-west-1'"},
		{name: "unknown key", breakIt: func(_ *http.Request, s *signing) {
			s.key.AccessKeyID = "ASIA0000000000000000"
		}, status: 403, code: "InvalidClientTokenId",
			message: "The security token included in the request is invalid."},
		{name: "other session token", breakIt: func(_ *http.Request, s *signing) {
			s.key.Token += "x"
		}, status: 403, code: "InvalidClientTokenId"},
		{name: "no session token", breakIt: func(_ *http.Request, s *signing) {
			s.key.Token = ""
		}, status: 403, code: "InvalidClientTokenId"},
		{name: "session token with a user's key", breakIt: func(_ *http.Request, s *signing) {
			s.key = user
			s.key.Token = "x"
		}, status: 403, code: "InvalidClientTokenId"},
		{name: "expired key", breakIt: func(_ *http.Request, s *signing) {
			s.key = expired
		}, status: 403, code: "ExpiredToken", message: "The security token included in the request is expired"},
		{name: "expired key, wrong secret", breakIt: func(_ *http.Request, s *signing) {
			s.key = expired
			s.key.Secret = "x"
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "wrong secret", breakIt: func(_ *http.Request, s *signing) {
			s.key.Secret = "wrong"
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "body changed", after: body(strings.Replace(whoAmI, "2011", "2012", 1)), status: 403,
			code: "SignatureDoesNotMatch", message: calculated},
		{name: "body longer", after: body(whoAmI + "&x=1"), status: 403, code: "SignatureDoesNotMatch",
			message: calculated},
		{name: "host changed", after: func(r *http.Request) {
			r.Host = "iam.amazonaws.com"
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "path changed", after: func(r *http.Request) {
			r.URL.Path = "/other"
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "query added", after: func(r *http.Request) {
			r.URL.RawQuery = "Action=GetRole"
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "method changed", after: func(r *http.Request) {
			r.Method = http.MethodPut
		}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "signed header changed", breakIt: func(r *http.Request, _ *signing) {
			r.Header.Set("X-Consul-IAM-ServerID", "a")
		},
			after: header("X-Consul-IAM-ServerID", "b"), status: 403, code: "SignatureDoesNotMatch",
			message: calculated},
		{name: "signed header gone", breakIt: func(r *http.Request, _ *signing) {
			r.Header.Set("X-Consul-IAM-ServerID", "a")
		},
			after: func(r *http.Request) {
				r.Header.Del("X-Consul-IAM-ServerID")
			}, status: 403, code: "SignatureDoesNotMatch", message: calculated},
		{name: "host not signed", after: authorization(";host", ""), status: 403, code: "SignatureDoesNotMatch",
			message: "'Host' or ':authority' must be a 'SignedHeader'"},
		{name: "x-amz header not signed", after: header("X-Amz-Target", "x"), status: 403,
			code: "SignatureDoesNotMatch", message: "'x-amz-target' must be a 'SignedHeader'"},
		{name: "signed headers reordered",
			after: authorization("content-length;content-type", "content-type;content-length"), status: 403,
			code: "SignatureDoesNotMatch"},
		{name: "body too long", after: body(strings.Repeat("x", 64<<10+1)), status: 413, code: "MalformedInput"},
		{name: "unknown action", breakIt: func(_ *http.Request, s *signing) {
			s.form = "Action=AssumeRole&Version=2011-06-15"
		}, status: 400, code: "InvalidAction", message: "Could not find operation AssumeRole for version 2011-06-15"},
		{name: "action of the other service", breakIt: func(_ *http.Request, s *signing) {
			s.service = "iam"
		}, status: 400, code: "InvalidAction"},
		{name: "no action", breakIt: func(_ *http.Request, s *signing) {
			s.form = "Version=2011-06-15"
		}, status: 400, code: "MissingAction"},
		{name: "bad form", breakIt: func(_ *http.Request, s *signing) {
			s.form = "Action=%zz"
		}, status: 400, code: "MalformedQueryString"},
	}
}

func TestSignatureRefused(t *testing.T) {
	t.Parallel()
	h, store, key := newHandler(t)
	expired := issue(t, store, productAPI(), time.Now().Add(-iam.Lifetime-time.Minute))
	user := store.PutUser(iam.User{Name: "ann", Account: account})
	for _, c := range refusals(expired, user) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := signing{key, "sts", region, time.Now(), whoAmI}
			unsigned := post(t, "https://sts.us-west-2.amazonaws.com/", whoAmI)
			if c.breakIt != nil {
				c.breakIt(unsigned, &s)
			}
			req := post(t, unsigned.URL.String(), s.form)
			req.Header = unsigned.Header
			sign(t, req, s.form, s.key, s.service, s.region, s.at)
			if c.after != nil {
				c.after(req)
			}
			status, text := do(t, h, req)
			var got awsError
			if err := xml.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			testkit.Equal(t, "status", status, c.status)
			testkit.Equal(t, "Code", got.Code, c.code)
			testkit.Equal(t, "Type", got.Type, "Sender")
			if !strings.Contains(got.Message, c.message) {
				t.Errorf("%d %+v, want %d %s %q", status, got, c.status, c.code, c.message)
			}
			testkit.Equal(t, "XMLName.Local", got.XMLName.Local, "ErrorResponse")
		})
	}
}
