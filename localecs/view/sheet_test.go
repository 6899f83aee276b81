package view_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/view"
)

func TestTextsDoNotOverlap(t *testing.T) {
	t.Parallel()
	s := view.NewSheet(200)
	for _, c := range []struct {
		x, y   float64
		anchor view.Anchor
		text   string
		want   bool
	}{
		{10, 20, view.AnchorStart, "first", true},
		{30, 22, view.AnchorStart, "second", false},
		{60, 20, view.AnchorStart, "second", true},
		{20, 40, view.AnchorStart, "below", true},
		{20, 47, view.AnchorStart, "half below", false},
		{199, 60, view.AnchorMiddle, "beyond the end", false},
		{160, 60, view.AnchorMiddle, "within", true},
		{5, 80, view.AnchorMiddle, "before the beginning", false},
		{10, 20, view.AnchorStart, "", true},
	} {
		if got := s.Text(c.x, c.y, c.anchor, 12, "x", c.text, ""); got != c.want {
			t.Errorf("%q: drawn %t, want %t", c.text, got, c.want)
		}
	}
	svg := s.SVG("c", "a picture")
	if n := strings.Count(svg, "<text "); n != 4 || strings.Contains(svg, "half") {
		t.Errorf("%d texts in\n%s", n, svg)
	}
}

func TestLongTextIsCutAndHasATitle(t *testing.T) {
	t.Parallel()
	s := view.NewSheet(200)
	if !s.Fitting(0, 20, 60, 12, "x", "a text that is too long for it") {
		t.Fatal("not drawn")
	}
	if svg := s.SVG("c", "n"); !strings.Contains(svg, "<title>a text that is too long for it</title>a text t…</text>") {
		t.Errorf("got\n%s", svg)
	}
	if w := view.FontSize(12).Width("consul-client"); w < 80 || w > 110 { // DejaVu Sans needs 82
		t.Errorf("consul-client is %g wide", w)
	}
}

func FuzzEverythingIsEscaped(f *testing.F) {
	f.Add("</text><script>alert(1)</script>", `" onload="x`)
	f.Add("\x00\x1b[31m\xff\u2028", "'&#0;]]>")
	f.Fuzz(func(t *testing.T, text, class string) {
		s := view.NewSheet(400)
		s.Text(1, 20, view.AnchorStart, 10, class, text, text)
		s.Rect(0, 0, 10, 10, class, text)
		s.Line(0, 0, 10, 10, class, text)
		s.Path(0, 0, "h1", class, text)
		d := xml.NewDecoder(strings.NewReader(s.SVG(class, text)))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch e.Name.Local {
			case "svg", "text", "title", "rect", "line", "path":
			default:
				t.Fatalf("an element %s came in", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Fatalf("an attribute %s came in", a.Name.Local)
				}
			}
		}
	})
}
