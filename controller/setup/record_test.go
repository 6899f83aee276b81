package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordEncode(t *testing.T) {
	t.Parallel()
	r := Record{Controller: mainCluster, Trust: []Claim{{"a", false}, {"z", true}}}
	want := `{"controller":"arn:aws:ecs:us-east-1:123456789012:cluster/main","trust":[{"arn":"a","added":false},` +
		`{"arn":"z","added":true}]}`
	if got := r.encode(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := parseRecord(want)
	if diff := cmp.Diff(r, back); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseRecordRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "invalid trust record",
		"{}":                                 "names no controller",
		"[]":                                 "invalid trust record",
		`{"controller":"a"} x`:               "trailing data",
		`{"controller":"a","later":1}`:       "unknown field",
		`{"controller":"a","trust":["arn"]}`: "invalid trust record",
	} {
		if _, err := parseRecord(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{`{"controller":"a","trust":[{"arn":"x","added":true}]}`,
		"{}", `{"controller":"a","trust":null,"tokenTTL":"90s"}`, "null"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		r, err := parseRecord(data)
		if err != nil {
			return
		}
		text := r.encode()
		again, err := parseRecord(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again.encode() != text {
			t.Errorf("%s becomes %s", text, again.encode())
		}
	})
}
