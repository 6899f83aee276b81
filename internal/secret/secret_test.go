package secret

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

const text = "3f2a1b0c-65de"

// holder has a Value as fmt meets them: exported, unexported, behind a pointer.
type holder struct {
	Exported Value
	hidden   Value
	pointer  *Value
}

func TestValueIsRedactedInEveryForm(t *testing.T) {
	t.Parallel()
	v := New(text)
	h := holder{v, v, &v}
	forms := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10s"} {
		forms[verb] = fmt.Sprintf(verb, v)
		forms[verb+" in a struct"] = fmt.Sprintf(verb, h)
		forms[verb+" in a map"] = fmt.Sprintf(verb, map[string]any{"a": v, "b": []Value{v}, "c": &h})
	}
	asJSON, err1 := json.Marshal(map[string]any{"v": v, "h": h})
	asXML, err2 := xml.Marshal(v)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	forms["json"], forms["xml"] = string(asJSON), string(asXML)
	forms["error"] = fmt.Errorf("use %s: %w", v, errors.New("refused")).Error()
	var logged bytes.Buffer
	hclog.New(&hclog.LoggerOptions{Output: &logged}).Info("text", "v", v, "h", h)
	hclog.New(&hclog.LoggerOptions{Output: &logged, JSONFormat: true}).Info("json", "v", v, "h", h)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "v", v, "h", h)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "v", v, "h", h)
	forms["logs"] = logged.String()
	for form, got := range forms {
		if strings.Contains(got, text) || strings.Contains(got, fmt.Sprintf("%x", text)) {
			t.Errorf("%s shows the secret: %s", form, got)
		}
	}
	if got := fmt.Sprintf("%s|%v|%q", v, v, v); got != "<redacted>|<redacted>|<redacted>" {
		t.Errorf("printed as %s", got)
	}
	if string(asJSON) != `{"h":{"Exported":"\u003credacted\u003e"},"v":"\u003credacted\u003e"}` {
		t.Errorf("JSON is %s", asJSON)
	}
}

func TestRevealReturnsTheText(t *testing.T) {
	t.Parallel()
	var decoded struct{ V Value }
	if err := json.Unmarshal([]byte(`{"V":"`+text+`"}`), &decoded); err != nil {
		t.Fatal(err)
	}
	for _, v := range []Value{New(text), decoded.V} {
		if v.Reveal() != text || v.Empty() {
			t.Errorf("Reveal() = %q, Empty() = %v", v.Reveal(), v.Empty())
		}
	}
	for _, v := range []Value{{}, New("")} {
		if v.Reveal() != "" || !v.Empty() {
			t.Errorf("Reveal() = %q, Empty() = %v, want the empty text", v.Reveal(), v.Empty())
		}
	}
}

func TestEqualComparesTexts(t *testing.T) {
	t.Parallel()
	if !New(text).Equal(New(text)) || !(Value{}).Equal(New("")) {
		t.Error("equal texts differ")
	}
	if New(text).Equal(New(text+"x")) || New(text).Equal(Value{}) {
		t.Error("different texts are equal")
	}
	if got := fmt.Sprintf("%x",
		New("a").SHA256()); got != "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" {
		t.Errorf("SHA256 of a = %s", got)
	}
}
