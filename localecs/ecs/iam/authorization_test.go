package iam

import (
	"github.com/meshtask/consul-ecs/internal/testkit"
	"strings"
	"testing"
)

func TestParseAuthorization(t *testing.T) {
	t.Parallel()
	// Commas without blanks and another order are allowed.
	got, bad := parseAuthorization("AWS4-HMAC-SHA256 Signature=0a1b,SignedHeaders=host;x-amz-date," +
		"Credential=AKID/20260302/us-west-2/sts/aws4_request")
	if bad != nil {
		t.Fatal(bad)
	}
	testkit.Equal(t, "keyID", got.keyID, "AKID")
	testkit.Equal(t, "date", got.date, "20260302")
	testkit.Equal(t, "region", got.region, "us-west-2")
	testkit.Equal(t, "service", got.service, "sts")
	testkit.Equal(t, "signature", got.signature, "0a1b")
	testkit.Equal(t, `strings.Join(got.signedHeaders, " ")`, strings.Join(got.signedHeaders, " "), "host x-amz-date")
	if !got.signs("host") || got.signs("content-type") {
		t.Error("signs is wrong")
	}
}

func FuzzParseAuthorization(f *testing.F) {
	for _, seed := range []string{
		"",
		"AWS4-HMAC-SHA256",
		"AWS4-HMAC-SHA256 Credential=A/20260302/us-west-2/sts/aws4_request, SignedHeaders=host, Signature=0",
		"AWS4-HMAC-SHA256 Credential=////, SignedHeaders=;;, Signature==",
		"AWS4-HMAC-SHA256 Credential=A/B/C/D/aws4_request,SignedHeaders=host,Signature=0,Extra=1",
		"Bearer x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		a, bad := parseAuthorization(header)
		if bad != nil {
			if bad.Status < 400 || bad.Code == "" {
				t.Fatalf("%q: empty error %+v", header, bad)
			}
			if bad.Message == "" {
				t.Fatalf("%q: empty error %+v", header, bad)
			}
			return
		}
		if a.signature == "" || len(a.signedHeaders) == 0 {
			t.Fatalf("%q: accepted as %+v", header, a)
		}
		// What was accepted says the same when written again.
		again := algorithm + " Credential=" +
			strings.Join([]string{a.keyID, a.date, a.region, a.service, terminator}, "/") +
			", SignedHeaders=" + strings.Join(a.signedHeaders, ";") + ", Signature=" + a.signature
		b, bad := parseAuthorization(again)
		if bad != nil || b.keyID != a.keyID {
			t.Fatalf("%q: %+v, written again %+v %v", header, a, b, bad)
		}
		if b.date != a.date || b.region != a.region {
			t.Fatalf("%q: %+v, written again %+v %v", header, a, b, bad)
		}
		if b.service != a.service || b.signature != a.signature {
			t.Fatalf("%q: %+v, written again %+v %v", header, a, b, bad)
		}
		if strings.Join(b.signedHeaders, ";") != strings.Join(a.signedHeaders, ";") {
			t.Fatalf("%q: %+v, written again %+v %v", header, a, b, bad)
		}
	})
}
