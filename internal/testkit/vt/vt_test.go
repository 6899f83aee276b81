package vt

import (
	"strings"
	"testing"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, output string
		screen       string
		row, col     int
	}{
		{"lines", "a\nb\r\nc", "a|b|c", 2, 1},
		{"scrolls", "1\n2\n3\n4\n5", "2|3|4|5", 3, 1},
		{"wraps", "12345678ab", "12345678|ab", 1, 2},
		{"wraps late", "12345678\nab", "12345678|ab", 1, 2},
		{"a wide character is not cut", "1234567日", "1234567|日", 1, 2},
		{"no wrap mode", "\x1b[?7l12345678ab\x1b[?7h\nc", "1234567b|c", 1, 1},
		{"erases the line", "abcdef\rxy\x1b[K", "xy", 0, 2},
		{"erases the rest", "ab\ncd\nef\x1b[2A\rx\x1b[J", "x", 0, 1},
		{"remembers a place", "ab\x1b7cd\nef\x1b8X", "abXd|ef", 0, 3},
		{"swallows colours", "\x1b[31mred\x1b[0m", "red", 0, 3},
		{"forgets a sequence that was cut", "a\x1b\x1b[?7\x1b[31mb\x1b[0m", "ab", 0, 2},
		{"does not go above the screen", "1\n2\n3\n4\n5\x1b[99Ax", "2x|3|4|5", 0, 2},
	} {
		term := New(8, 4)
		for i := range len(c.output) { // in pieces, as a pipe may
			term.Write([]byte{c.output[i]})
		}
		row, col := term.Cursor()
		if got := strings.Join(term.Screen(), "|"); got != c.screen || row != c.row || col != c.col || len(term.Unknown) > 0 {
			t.Errorf("%s: got %q, cursor %d, %d, unknown %v; want %q, cursor %d, %d", c.name, got, row, col, term.Unknown, c.screen, c.row, c.col)
		}
	}
}

func TestUnknownSequences(t *testing.T) {
	t.Parallel()
	term := New(8, 4)
	term.Write([]byte("\x1b[?25lx\x1bcy\x1b[3D"))
	if got := strings.Join(term.Unknown, " "); got != `"\x1b[?25l" "\x1bc" "\x1b[3D"` {
		t.Errorf("got %s", got)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	const output = "one line\nof many words\nlast\x1b[1A\r"
	for _, c := range []struct {
		reflow        bool
		width, height int
		screen, text  string
		row           int
	}{
		{true, 6, 9, "one li|ne|of man|y word|s|last", "one line\nof many words\nlast\n", 3},
		{true, 6, 2, "y word|s", "one line\nof many words\nlast\n", 0},
		{true, 20, 4, "one line|of many words|last", "one line\nof many words\nlast\n", 1},
		{false, 6, 9, "one li|of man|rds|last", "one li\nof manrds\nlast\n", 2},
	} {
		term := New(10, 4)
		term.Reflow = c.reflow
		term.Write([]byte(output))
		term.Resize(c.width, c.height)
		row, _ := term.Cursor()
		if got := strings.Join(term.Screen(), "|"); got != c.screen || term.Text() != c.text || row != c.row {
			t.Errorf("%dx%d, reflow %t: got %q, cursor in %d, %q; want %q, %d, %q", c.width, c.height, c.reflow, got, row, term.Text(), c.screen, c.row, c.text)
		}
	}
}
