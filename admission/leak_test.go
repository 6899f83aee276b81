package admission

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// Two tokens of operators: as Consul makes them, and one with characters that URLs and
// JSON escape.
const (
	leakedUUID = "5ec5ec19-0000-4000-8000-00000000001e"
	leakedOdd  = `p/s w+rd?"<ü>%\`
)

// forms are texts with a token in them, by what Find calls them.
func forms(token string) map[string][]string {
	percents := func(text string) string {
		return "%" + strings.Join(strings.SplitAfterN(fmt.Sprintf("% x", text), " ", -1), "%")
	}
	encoded := []string{}
	for _, text := range []string{token, "x" + token, "x:" + token, "xyz:" + token + ":more", `{"token": "` + token + `"}`} {
		encoded = append(encoded, base64.StdEncoding.EncodeToString([]byte(text)), "Basic "+base64.RawURLEncoding.EncodeToString([]byte(text)),
			url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	all := map[string][]string{"plain": {token, "Bearer " + token + "\n", token + token}, "base64": encoded}
	all["URL-encoded"] = []string{"https://consul/?token=" + strings.ReplaceAll(percents(token), " ", ""), strings.ToUpper(strings.ReplaceAll(percents(token), " ", ""))}
	if url.QueryEscape(token) != token {
		all["URL-encoded"] = append(all["URL-encoded"], "token="+url.QueryEscape(token)+"&x", "/token/"+url.PathEscape(token))
	}
	return all
}

// in is the text as a JSON string, and that in another one.
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
		leaks := NewLeaks(secret.New(token))
		for form, list := range forms(token) {
			for _, text := range list {
				once, twice := in(t, text)
				for _, doc := range []string{text, "before " + text + " behind", `{"a": ` + once + `}`, `{"a": ` + twice + `}`} {
					if got := leaks.Find(doc); got == "" {
						t.Errorf("the token is not found in %s (%s)", doc, form)
					}
					if rest := leaks.Redact("kept\n" + doc + "\nkept"); leaks.Find(rest) != "" || !strings.HasPrefix(rest, "kept\n") || !strings.HasSuffix(rest, "kept") {
						t.Errorf("%s: redacted %s", doc, rest)
					}
				}
				if got := leaks.Find(text); token == leakedUUID && got != form {
					t.Errorf("%s has the form %s, want %s", text, got, form)
				}
			}
		}
	}
}

func TestOtherTextsAreNoLeak(t *testing.T) {
	t.Parallel()
	leaks := NewLeaks(secret.New(leakedUUID))
	other := strings.Replace(leakedUUID, "4000", "4001", 1)
	for _, list := range forms(other) {
		for _, text := range list {
			if form := leaks.Find(text); form != "" {
				t.Errorf("%s found in %s", form, text)
			}
		}
	}
	if form := NewLeaks(secret.Value{}).Find("anything"); form != "" {
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
			if NewLeaks(secret.New(token)).Find(encode(text)) == "" {
				t.Fatalf("the token %q is not found in %s, which is %q", token, encode(text), text)
			}
		}
	}
}

func TestGuardedWriters(t *testing.T) {
	t.Parallel()
	leaks := NewLeaks(secret.New(leakedUUID))
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

// admitWith admits with a token.
func admitWith(t *testing.T, doc []byte, mesh, token string) *Result {
	t.Helper()
	r, err := Admit(doc, Options{Mesh: parseMesh(t, []byte(mesh)), Token: secret.New(token)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTokenIsStripped(t *testing.T) {
	t.Parallel()
	for _, token := range []string{leakedUUID, leakedOdd} {
		text, _ := in(t, token)
		doc := definition("", plainApp+`, "environment": [{"name": "A", "value": "1"}, {"name": "CONSUL_HTTP_TOKEN", "value": `+text+`}, {"name": "OTHER", "value": `+text+`}, {"name": "B", "value": "2"}]`)
		mesh := `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 1, "meta": {"owner": "a", "token": ` + text + `}}, "admission": {"operatorToken": ` + text + `}}`
		r := admitWith(t, doc, mesh, token)
		if form := NewLeaks(secret.New(token)).Find(string(r.After.Bytes())); form != "" {
			t.Errorf("the token is in the definition, %s", form)
		}
		var got []string
		for _, f := range r.Findings {
			got = append(got, f.String())
		}
		want := []string{
			`warning ADM-TOKEN $: removed the member token of the mesh file, whose value is the operator's token (remove it from the input)`,
			`warning ADM-TOKEN $.containerDefinitions[0].environment[1]: removed the variable, whose value is the operator's token (remove it from the input)`,
			`warning ADM-TOKEN $.containerDefinitions[0].environment[2]: removed the variable, whose value is the operator's token (remove it from the input)`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("findings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if env := fmt.Sprint(r.After.Definition.Container("app").Environment); env != "[{A 1  } {B 2  }]" {
			t.Errorf("environment %s", env)
		}
		if again := admitWith(t, r.After.Bytes(), mesh, token); !bytes.Equal(again.After.Bytes(), r.After.Bytes()) {
			t.Error("the second admission changes the first")
		}
	}
}

func TestLeakRejectsTheDefinition(t *testing.T) {
	t.Parallel()
	for place, more := range map[string]string{
		"$.containerDefinitions[0].command[1]":                            `, "command": ["run", "-token=%s"]`,
		"$.containerDefinitions[0].environment[0].value":                  `, "environment": [{"name": "A", "value": "x %s"}]`,
		"$.containerDefinitions[0].healthCheck.command[1]":                `, "healthCheck": {"command": ["CMD", "%s"]}`,
		"$.containerDefinitions[0].dockerLabels.owner":                    `, "dockerLabels": {"owner": "%s"}`,
		"$.containerDefinitions[0].x-unknown":                             `, "x-unknown": "%s"`,
		"$.containerDefinitions[0].logConfiguration.options.splunk-token": `, "logConfiguration": {"logDriver": "splunk", "options": {"splunk-token": "%s"}}`,
	} {
		for _, leaked := range []string{leakedUUID, base64.StdEncoding.EncodeToString([]byte("a:" + leakedUUID)), "%" + strings.ToUpper(hex.EncodeToString([]byte{leakedUUID[0]})) + leakedUUID[1:]} {
			r := admitWith(t, definition("", plainApp+strings.ReplaceAll(more, "%s", leaked)), plainMesh, leakedUUID)
			var found []string
			for _, f := range r.Findings {
				if f.Code == codeLeak {
					found = append(found, f.Path)
				}
				if strings.Contains(f.String(), leaked) {
					t.Errorf("the finding %s has the token", f)
				}
			}
			if !r.Rejected(false) || strings.Join(found, " ") != place {
				t.Errorf("%s in %s: rejected %v, found at %q", leaked, place, r.Rejected(false), found)
			}
		}
	}
	r := admitWith(t, definition("", plainApp), `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 1, "tags": ["`+leakedUUID+`"]}}`, leakedUUID)
	if !r.Rejected(false) {
		t.Errorf("a list of the mesh file leaks: findings %v", r.Findings)
	}
	plain := definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/mesh-inject": "false"}, "environment": [{"name": "CONSUL_HTTP_TOKEN", "value": "`+leakedUUID+`"}]`)
	if r := admitWith(t, plain, plainMesh, leakedUUID); r.Injected || !r.Rejected(false) || !bytes.Equal(r.After.Bytes(), plain) {
		t.Errorf("without the mesh: injected %v, findings %v", r.Injected, r.Findings)
	}
}

func TestFindingsAreRedacted(t *testing.T) {
	t.Parallel()
	r := admitWith(t, definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/upstreams": "`+leakedUUID+`"}`), plainMesh, leakedUUID)
	codes := ""
	for _, f := range r.Findings {
		codes += f.Code + " "
		if strings.Contains(f.String(), leakedUUID) {
			t.Errorf("the finding %s has the token", f)
		}
	}
	if codes != "ADM-LEAK ADM-ANN-VALUE " && codes != "ADM-ANN-VALUE ADM-LEAK " {
		t.Errorf("codes %s", codes)
	}
}
