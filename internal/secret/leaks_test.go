package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// Two tokens of operators: as Consul makes them, and one with characters that URLs and
// JSON escape.
const (
	leakedUUID = "5ec5ec19-0000-4000-8000-00000000001e"
	leakedOdd  = `p/s w+rd?"<ü>%\`
)

// forms returns texts with a token in them, by what Find calls them.
func forms(token string) map[string][]string {
	percents := func(text string) string {
		return "%" + strings.Join(strings.SplitAfterN(fmt.Sprintf("% x", text), " ", -1), "%")
	}
	encoded := []string{}
	for _, text := range []string{token, "x" + token, "x:" + token, "xyz:" + token + ":more", `{"token": "` +
		token + `"}`} {
		encoded = append(encoded, base64.StdEncoding.EncodeToString([]byte(text)),
			"Basic "+base64.RawURLEncoding.EncodeToString([]byte(text)),
			url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	all := map[string][]string{"plain": {token, "Bearer " + token + "\n", token + token}, "base64": encoded}
	all["URL-encoded"] = []string{
		"https://consul/?token=" + strings.ReplaceAll(percents(token), " ", ""),
		strings.ToUpper(strings.ReplaceAll(percents(token), " ", "")),
	}
	if url.QueryEscape(token) != token {
		all["URL-encoded"] = append(all["URL-encoded"], "token="+url.QueryEscape(token)+"&x",
			"/token/"+url.PathEscape(token))
	}
	return all
}

// in returns the text as a JSON string, and that in another one.
func in(t *testing.T, text string) (once, twice string) {
	t.Helper()
	a, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(string(a))
	if err != nil {
		t.Fatal(err)
	}
	return string(a), string(b)
}

func TestLeakIsFoundInEachForm(t *testing.T) {
	t.Parallel()
	for _, token := range []string{leakedUUID, leakedOdd} {
		leaks := NewLeaks(New(token))
		for form, list := range forms(token) {
			for _, text := range list {
				once, twice := in(t, text)
				for _, doc := range []string{
					text, "before " + text + " behind", `{"a": ` + once + `}`, `{"a": ` + twice + `}`,
				} {
					if got := leaks.Find(doc); got == "" {
						t.Errorf("the token is not found in %s (%s)", doc, form)
					}
					rest := leaks.Redact("kept\n" + doc + "\nkept")
					if got := leaks.Find(rest); got != "" {
						t.Errorf("%s: redacted %s, which has the token as %s", doc, rest, got)
					}
					if !strings.HasPrefix(rest, "kept\n") || !strings.HasSuffix(rest, "kept") {
						t.Errorf("%s: redacted %s, without other lines", doc, rest)
					}
				}
				if got := leaks.Find(text); token == leakedUUID && got != form {
					t.Errorf("%s has the form %s, want %s", text, got, form)
				}
			}
		}
	}
}

// Programs such as base64 wrap what they print, also in the middle of the token.
func TestLeakIsFoundInWrappedBase64(t *testing.T) {
	t.Parallel()
	leaks := NewLeaks(New(leakedUUID))
	text := base64.StdEncoding.EncodeToString([]byte(`{"address": "https://consul.example.com", "token": "` +
		leakedUUID + `"}`))
	for _, end := range []string{"\n", "\r\n", "\n    "} {
		wrapped := text[:76] + end + text[76:] + end
		if strings.Contains(wrapped, base64.StdEncoding.EncodeToString([]byte(leakedUUID))) {
			t.Fatal("the token is on one line")
		}
		once, twice := in(t, wrapped)
		for _, doc := range []string{wrapped, `{"a": ` + once + `}`, `{"a": ` + twice + `}`, url.QueryEscape(wrapped)} {
			if got := leaks.Find(doc); got != "base64" {
				t.Errorf("the token is %q in %s", got, doc)
			}
			if rest := leaks.Redact("kept\n" + doc); leaks.Find(rest) != "" {
				t.Errorf("%s: redacted %s", doc, rest)
			}
		}
	}
}

func TestOtherTextsAreNoLeak(t *testing.T) {
	t.Parallel()
	leaks := NewLeaks(New(leakedUUID))
	other := strings.Replace(leakedUUID, "4000", "4001", 1)
	for _, list := range forms(other) {
		for _, text := range list {
			if form := leaks.Find(text); form != "" {
				t.Errorf("%s found in %s", form, text)
			}
		}
	}
	if form := NewLeaks(Value{}).Find("anything"); form != "" {
		t.Errorf("%s found of no token", form)
	}
}

// Any token is found at any place of any encoded text.
func TestLeakIsFoundAnywhere(t *testing.T) {
	t.Parallel()
	d := rand.New(rand.NewPCG(26, 0))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(' ' + d.IntN(95))
		}
		return string(b)
	}
	for range 2000 {
		token := random(8 + d.IntN(40))
		text := random(d.IntN(9)) + token + random(d.IntN(9))
		for _, encode := range []func(string) string{
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
			func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
			url.QueryEscape, url.PathEscape,
			func(s string) string { once, _ := in(t, s); return once },
			func(s string) string { _, twice := in(t, s); return twice },
		} {
			if NewLeaks(New(token)).Find(encode(text)) == "" {
				t.Fatalf("the token %q is not found in %s, which is %q", token, encode(text), text)
			}
		}
	}
}

func TestGuardedWriters(t *testing.T) {
	t.Parallel()
	leaks := NewLeaks(New(leakedUUID))
	var strict, redacted bytes.Buffer
	for _, text := range []string{"fine\n", "token " + leakedUUID + "\n", "fine\n"} {
		_, err := leaks.Writer(&strict).Write([]byte(text))
		if leaked := strings.Contains(text, leakedUUID); leaked != errors.Is(err, ErrLeak) {
			t.Errorf("%q: error %v", text, err)
		}
		if n, err := leaks.Redactor(&redacted).Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d bytes, %v", text, n, err)
		}
	}
	if strict.String() != "fine\nfine\n" || redacted.String() != "fine\ntoken <redacted>\nfine\n" {
		t.Errorf("written %q, redacted %q", strict.String(), redacted.String())
	}
}
