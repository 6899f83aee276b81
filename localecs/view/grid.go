package view

import (
	"strings"
	"unicode"
)

// style is how a cell is shown in colour, as a terminal's parameters.
type sketchStyle string

const (
	none  sketchStyle = ""
	blue  sketchStyle = "34"
	red   sketchStyle = "31;1"
	amber sketchStyle = "33"
	grey  sketchStyle = "90"
	pink  sketchStyle = "35"
)

// cell is one character.
type cell struct {
	char  rune
	style sketchStyle
	// rank says who keeps the cell: marks before bars.
	rank int
}

// row is a line of cells.
type sketchRow []cell

// text puts text at a place, if there is room before the next thing; it is cut at the
// row's end otherwise.
func (r sketchRow) text(at int, s sketchStyle, text string) bool {
	runes := []rune(text)
	if at < 0 || at+len(runes) > len(r) {
		return false
	}
	for i := range runes {
		if r[at+i].char != ' ' {
			return false
		}
	}
	for i, c := range runes {
		r[at+i] = cell{char: c, style: s}
	}
	return true
}

// put draws one cell, unless something of a higher rank is there.
func (r sketchRow) put(at int, c cell) {
	if at >= 0 && at < len(r) && r[at].rank <= c.rank {
		r[at] = c
	}
}

// blank is a row of so many cells.
func blank(width int) sketchRow {
	r := make(sketchRow, width)
	for i := range r {
		r[i].char = ' '
	}
	return r
}

// line is the row as it is written, without what is blank at its end.
func (r sketchRow) line(colour bool) string {
	last := len(r)
	for last > 0 && r[last-1].char == ' ' {
		last--
	}
	var b strings.Builder
	now := none
	for _, c := range r[:last] {
		if colour && c.style != now {
			b.WriteString("\x1b[0m")
			if c.style != none {
				b.WriteString("\x1b[" + string(c.style) + "m")
			}
			now = c.style
		}
		b.WriteRune(c.char)
	}
	if now != none {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// clean is text without what a terminal would obey, or show as more or less than one
// cell.
func cleanCells(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && !unicode.Is(unicode.Mn, r) && r < 0x1100 {
			return r
		}
		return '?'
	}, text)
}

// cut shortens text to so many cells.
func cut(text string, cells int, ellipsis string) string {
	runes := []rune(text)
	if len(runes) <= cells {
		return text
	}
	if cells <= len([]rune(ellipsis)) {
		return string(runes[:max(0, cells)])
	}
	return string(runes[:cells-len([]rune(ellipsis))]) + ellipsis
}

// charset is what is drawn with.
type charset struct {
	states   map[LaneState]cell
	stopping rune // of a state that is not a line
	marks    map[Glyph]cell
	levels   []rune // of a histogram, from little to much
	band     rune
	axis     rune
	tick     rune
	ellipsis string
}

func charsetOf(ascii bool) charset {
	c := charset{
		states: map[LaneState]cell{
			LaneWaiting: {char: '·', style: grey}, LaneUnknown: {char: '░', style: grey}, LaneUp: {char: '▒'},
			LaneHealthy: {char: '█', style: blue}, LaneWarning: {char: '!', style: amber}, LaneUnhealthy: {char: 'x', style: red},
			LaneOut: {char: '─', style: grey}, LaneHeld: {char: '═', style: pink},
		},
		stopping: '▄',
		marks: map[Glyph]cell{
			GlyphKill: {'K', red, 6}, GlyphBadExit: {'E', red, 5}, GlyphSick: {'U', red, 4}, GlyphAgain: {'R', amber, 4},
			GlyphTerm: {'T', amber, 3}, GlyphExit: {'|', none, 2},
		},
		levels: []rune("▁▂▃▄▅▆▇█"), band: '━', axis: '─', tick: '┬', ellipsis: "…",
	}
	if !ascii {
		return c
	}
	for state, char := range map[LaneState]rune{
		LaneWaiting: '.', LaneUnknown: ':', LaneUp: '=', LaneHealthy: '#', LaneOut: '-', LaneHeld: '~',
	} {
		c.states[state] = cell{char: char, style: c.states[state].style}
	}
	c.stopping, c.levels, c.band, c.axis, c.tick, c.ellipsis = '_', []rune(".:oO"), '=', '-', '+', ".."
	return c
}
