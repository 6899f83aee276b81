package view

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sheet is one SVG image. Coordinates are in pixels from the upper left corner.
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

// NewSheet returns an empty sheet. Its height grows with its content.
func NewSheet(width float64) *Sheet { return &Sheet{width: width} }

// reach makes the sheet at least y high.
func (s *Sheet) reach(y float64) { s.height = max(s.height, y) }

// Rect draws a rectangle of at least a pixel, with a title unless that is empty.
func (s *Sheet) Rect(x, y, w, h float64, class, title string) {
	s.reach(y + h)
	s.shape("rect", fmt.Sprintf(`class="%s" x="%s" y="%s" width="%s" height="%s"`, escape(class), n(x), n(y),
		n(max(w, 1)), n(h)), title)
}

// Line draws a straight line.
func (s *Sheet) Line(x1, y1, x2, y2 float64, class, title string) {
	s.reach(max(y1, y2))
	s.shape("line", fmt.Sprintf(`class="%s" x1="%s" y1="%s" x2="%s" y2="%s"`, escape(class), n(x1), n(y1), n(x2),
		n(y2)), title)
}

// Path draws a shape whose data is relative to a point.
func (s *Sheet) Path(x, y float64, data, class, title string) {
	s.reach(y)
	s.shape("path", fmt.Sprintf(`class="%s" d="M%s,%s %s"`, escape(class), n(x), n(y), escape(data)), title)
}

func (s *Sheet) shape(element, attributes, title string) {
	if title == "" {
		fmt.Fprintf(&s.shapes, "<%s %s/>\n", element, attributes)
	} else {
		fmt.Fprintf(&s.shapes, "<%s %s><title>%s</title></%s>\n", element, attributes, escape(title), element)
	}
}

// Anchor is the point of a text whose place is given.
type Anchor string

// The anchors.
const (
	AnchorStart  Anchor = "start"
	AnchorMiddle Anchor = "middle"
)

// Text draws a text whose baseline is y, unless it would overlap another one or leave
// the sheet: then it returns false. An empty text always fits.
func (s *Sheet) Text(x, y float64, a Anchor, size FontSize, class, text, title string) bool {
	if text == "" {
		return true
	}
	width, left := size.Width(text), x
	if a == AnchorMiddle {
		left -= width / 2
	}
	b := box{left, y - ascent*float64(size), left + width, y + descent*float64(size)}
	if b.x1 < 0 || b.x2 > s.width || slices.ContainsFunc(s.texts, b.overlaps) {
		return false
	}
	s.texts = append(s.texts, b)
	s.reach(b.y2)
	fmt.Fprintf(&s.words, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s">`, escape(class), n(x), n(y),
		n(float64(size)), a)
	if title != "" {
		fmt.Fprintf(&s.words, "<title>%s</title>", escape(title))
	}
	s.words.WriteString(escape(text) + "</text>\n")
	return true
}

// Fitting draws a text, shortened to the room; then its title is the whole text.
func (s *Sheet) Fitting(x, y, room float64, size FontSize, class, text string) bool {
	title := ""
	short := size.cut(text, room)
	if short != text {
		title = text
	}
	return s.Text(x, y, AnchorStart, size, class, short, title)
}

// SVG returns the image, with a name for screen readers.
func (s *Sheet) SVG(class, name string) string {
	return fmt.Sprintf("<svg class=\"%s\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %s %s\" width=\"%s\" "+
		"height=\"%s\" xmlns=\"http://www.w3.org/2000/svg\">\n%s</svg>\n",
		escape(class), escape(name), n(s.width), n(s.height+2), n(s.width), n(s.height+2),
		s.shapes.String()+s.words.String())
}

// n formats a coordinate, to a tenth of a pixel.
func n(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") }

// escape makes text safe between tags and in attributes. Characters that XML does not
// allow become question marks.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfffe || r == 0xffff || r == '\uFFFD' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return html.EscapeString(text)
}

// FontSize is in pixels.
type FontSize float64

// ascent and descent are how far letters reach above and below the baseline, in parts
// of the size.
const (
	ascent  = 0.95
	descent = 0.28
)

// letterWidths are in parts of the size, for the widest font that a browser may choose,
// DejaVu Sans, rounded up.
var letterWidths = []struct {
	letters string
	width   float64
}{
	{"ijlIJ.,:;'| \u00b7", 0.34},
	{"frt()[]/\\-!", 0.42},
	{"\"sczy", 0.56},
	{"GOQ+<>=~#NHDUVw&", 0.84},
	{"mMW@%…", 1},
	{"ABCEFKLPRSTXYZ", 0.72},
}

// Widths of the other letters, in ASCII and beyond.
const (
	usualWidth = 0.66
	otherWidth = 1.4
)

// Width returns how wide a text is at most.
func (s FontSize) Width(text string) float64 {
	sum := 0.0
	for _, r := range text {
		sum += letterWidth(r)
	}
	return sum * float64(s)
}

func letterWidth(r rune) float64 {
	for _, w := range letterWidths {
		if strings.ContainsRune(w.letters, r) {
			return w.width
		}
	}
	if r >= utf8.RuneSelf {
		return otherWidth
	}
	return usualWidth
}

// minCut is the least number of letters of a shortened text.
const minCut = 3

// cut shortens a text to the room; the result is empty if the room is too small.
func (s FontSize) cut(text string, room float64) string {
	if s.Width(text) <= room {
		return text
	}
	runes := []rune(text)
	for len(runes) > minCut {
		runes = runes[:len(runes)-1]
		if short := string(runes) + "…"; s.Width(short) <= room {
			return short
		}
	}
	return ""
}
