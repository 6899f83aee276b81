package setup

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordEncode(t *testing.T) {
	t.Parallel()
	r := Record{Cluster: mainCluster, Trust: map[string][]Claim{"b": {{"z", true}, {"a", false}}, "a": {{"m", true}}}}
	want := `{"cluster":"arn:aws:ecs:us-east-1:123456789012:cluster/main","trust":{"a":[{"arn":"m","added":true}],"b":[{"arn":"a","added":false},{"arn":"z","added":true}]}}`
	if got := string(r.encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := parseRecord([]byte(want))
	if diff := cmp.Diff(r, back); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseRecordRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "invalid trust record",
		"{}":                                    "names no cluster",
		"[]":                                    "invalid trust record",
		`{"cluster":"a"} x`:                     "trailing data",
		`{"cluster":"a","later":1}`:             "unknown field",
		`{"cluster":"a","trust":{"m":["arn"]}}`: "invalid trust record",
		strings.Repeat(" ", maxRecord+1):        "at most",
	} {
		if _, err := parseRecord([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{`{"cluster":"a","trust":{"m":[{"arn":"x","added":true}]}}`, "{}", `{"cluster":"a","trust":{"m":null}}`, "null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord(data)
		if err != nil {
			return
		}
		text := r.encode()
		again, err := parseRecord(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !bytes.Equal(again.encode(), text) {
			t.Errorf("%s becomes %s", text, again.encode())
		}
	})
}
