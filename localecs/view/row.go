package view

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// style is a colour, as the number that a terminal knows it by. It helps the
// eye; the words say it all.
type style string

const (
	plain style = ""
	good  style = "32"
	bad   style = "31"
	busy  style = "33"
	quiet style = "2"
)

// span is a piece of a row.
type span struct {
	text  string
	style style
}

// row is one line of the screen.
type row []span

// width is in cells: a wide character has two.
func (r row) width() int {
	n := 0
	for _, s := range r {
		n += cells(s.text)
	}
	return n
}

// cells is the width of text, at once for what most text is made of.
func cells(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(text)
		}
	}
	return len(text) // there are no control characters
}

// padded is the row with spaces up to the width.
func (r row) padded(width int) row {
	return append(r, span{strings.Repeat(" ", max(0, width-r.width())), plain})
}

// and goes on with one more thing of a list.
func (r row) and(more ...span) row {
	if len(r) > 0 {
		r = append(r, span{", ", plain})
	}
	return append(r, more...)
}

// cut is the row in at most width cells; an ellipsis stands for what is
// missing.
func (r row) cut(width int) row {
	if r.width() <= width {
		return r
	}
	var short row
	left := width - 1 // for the ellipsis
	for _, s := range r {
		text := prefix(s.text, left)
		left -= cells(text)
		short = append(short, span{text, s.style})
		if text != s.text {
			break
		}
	}
	return append(short, span{"…", plain})
}

// prefix is as much of text as fits, in whole characters as they are seen.
func prefix(text string, width int) string {
	n, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if width -= w; width < 0 {
			break
		}
		n += len(cluster)
	}
	return text[:n]
}

// ending is left and then tail within width cells: tail stays whole as long as
// something of left can be seen.
func ending(left, tail row, width int) row {
	if room := width - tail.width(); room >= 8 {
		return append(left.cut(room), tail...)
	}
	return append(left, tail...).cut(width)
}

// encode is the row as it is written.
func (r row) encode(colour bool) string {
	var b strings.Builder
	for _, s := range r {
		if colour && s.style != plain && s.text != "" {
			b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
		} else {
			b.WriteString(s.text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// clean is text that a terminal does not obey.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}
