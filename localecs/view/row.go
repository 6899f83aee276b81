package view

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// style is a colour, as the parameter of a terminal's escape sequence. All information
// is in the words as well.
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

// cells is the width of text, fast for ASCII.
func cells(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(text)
		}
	}
	return len(text) // clean has removed control characters
}

// padded is the row with spaces up to the width.
func (r row) padded(width int) row {
	return append(r, span{strings.Repeat(" ", max(0, width-r.width())), plain})
}

// and appends an element of a list.
func (r row) and(more ...span) row {
	if len(r) > 0 {
		r = append(r, span{", ", plain})
	}
	return append(r, more...)
}

// cut shortens the row to width cells, the last one an ellipsis.
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

// prefix is as much of text as fits, in whole grapheme clusters.
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

// ending is left and tail within width cells; left is cut first, down to 8 cells.
func ending(left, tail row, width int) row {
	if room := width - tail.width(); room >= 8 {
		return append(left.cut(room), tail...)
	}
	return append(left, tail...).cut(width)
}

// encode is the row as it is written to the terminal.
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

// clean removes control characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}
