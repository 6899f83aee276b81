package view

import (
	"fmt"
	"html"
	"strings"
)

// Sheet is one picture. Coordinates are in pixels from the upper left corner.
type Sheet struct {
	width, height float64
	// Texts are drawn over all shapes.
	shapes, words strings.Builder
	texts         []box
}

type box struct{ x1, y1, x2, y2 float64 }

func (a box) overlaps(b box) bool {
	return a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2
}

// New makes a sheet of that width; its height grows.
func NewSheet(width float64) *Sheet { return &Sheet{width: width} }

// Width is the sheet's.
func (s *Sheet) Width() float64 { return s.width }

// reach makes the sheet so high at least.
func (s *Sheet) reach(y float64) { s.height = max(s.height, y) }

// Rect is a rectangle with a title; an empty title is none. It is never thinner than
// can be seen.
func (s *Sheet) Rect(x, y, w, h float64, class, title string) {
	s.reach(y + h)
	fmt.Fprintf(&s.shapes, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, Escape(class), n(x), n(y), n(max(w, 1)), n(h))
	s.end("rect", title)
}

// Line is a straight one.
func (s *Sheet) Line(x1, y1, x2, y2 float64, class, title string) {
	s.reach(max(y1, y2))
	fmt.Fprintf(&s.shapes, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"`, Escape(class), n(x1), n(y1), n(x2), n(y2))
	s.end("line", title)
}

// Path is a shape whose data is relative to a point.
func (s *Sheet) Path(x, y float64, data, class, title string) {
	s.reach(y)
	fmt.Fprintf(&s.shapes, `<path class="%s" d="M%s,%s %s"`, Escape(class), n(x), n(y), Escape(data))
	s.end("path", title)
}

func (s *Sheet) end(element, title string) {
	if title == "" {
		s.shapes.WriteString("/>\n")
		return
	}
	fmt.Fprintf(&s.shapes, "><title>%s</title></%s>\n", Escape(title), element)
}

// Anchor says which point of a text is given.
type Anchor string

// The anchors.
const (
	AnchorStart  Anchor = "start"
	AnchorMiddle Anchor = "middle"
	AnchorEnd    Anchor = "end"
)

// Text draws a text whose baseline is y, unless it would overlap another one or leave
// the sheet: then it draws nothing and returns false. An empty one is always drawn.
func (s *Sheet) Text(x, y float64, a Anchor, size FontSize, class, text, title string) bool {
	if text == "" {
		return true
	}
	b := size.box(x, y, a, text)
	if b.x1 < 0 || b.x2 > s.width {
		return false
	}
	for _, other := range s.texts {
		if b.overlaps(other) {
			return false
		}
	}
	s.texts = append(s.texts, b)
	s.reach(b.y2)
	fmt.Fprintf(&s.words, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s">`, Escape(class), n(x), n(y), n(float64(size)), a)
	if title != "" {
		fmt.Fprintf(&s.words, "<title>%s</title>", Escape(title))
	}
	s.words.WriteString(Escape(text) + "</text>\n")
	return true
}

// Fitting is Text, shortened until it is no wider than room; the title then has all of
// it.
func (s *Sheet) Fitting(x, y, room float64, a Anchor, size FontSize, class, text, title string) bool {
	short := size.Cut(text, room)
	if short != text && title == "" {
		title = text
	}
	return s.Text(x, y, a, size, class, short, title)
}

// SVG is the picture, with a name for who cannot see it.
func (s *Sheet) SVG(class, name string) string {
	return fmt.Sprintf("<svg class=\"%s\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\" xmlns=\"http://www.w3.org/2000/svg\">\n%s</svg>\n",
		Escape(class), Escape(name), n(s.width), n(s.height+2), n(s.width), n(s.height+2), s.shapes.String()+s.words.String())
}

// n is a coordinate, to a tenth of a pixel.
func n(f float64) string {
	text := fmt.Sprintf("%.1f", f)
	return strings.TrimSuffix(text, ".0")
}

// Escape makes text safe between tags and in attributes. What XML does not allow at
// all becomes a question mark.
func Escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfffe || r == 0xffff || r == '\uFFFD' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return html.EscapeString(text)
}
