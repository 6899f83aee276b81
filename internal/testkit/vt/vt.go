// Package vt is a terminal emulator for tests of what localecs draws.
//
// Flow: 1. Write interprets a program's output; 2. Resize resizes as a window does; 3.
// Text returns everything from the first line on, with the scrollback.
//
// Owns: wrapping, scrolling, the cursor, reflow. Colours are swallowed.
// Never does: more than the programs of this project need; an unknown sequence is added
// to Unknown. Reflow, scrollback, wide characters and Unknown are the reasons for it:
// github.com/hinshun/vt10x has none of them.
// Start reading at: Terminal.
package vt

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Terminal is a terminal with its scrollback, for one goroutine.
type Terminal struct {
	// Reflow wraps lines anew at a new width, as most terminals do; else rows are cut.
	Reflow bool
	// Unknown lists the unknown sequences.
	Unknown []string

	width, height int
	rows          []line
	top           int // the first row of the screen
	row, col      int // the cursor, in rows
	noWrap        bool
	pending       bool // the last column is filled, the next character wraps
	saved         [2]int
	rest          []byte // the beginning of a sequence
}

type line struct {
	cells   []string // a wide character is followed by an empty one
	wrapped bool     // it continues in the next row
}

// New returns an empty terminal.
func New(width, height int) *Terminal {
	return &Terminal{width: width, height: height, rows: []line{{}}}
}

// Write interprets p, with line ends as a tty passes them on. It never fails.
func (t *Terminal) Write(p []byte) (int, error) {
	data := append(t.rest, p...)
	for len(data) > 0 {
		n := t.obey(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	t.rest = append([]byte(nil), data...)
	return len(p), nil
}

// obey interprets the first character or sequence of data and returns its length, 0 if it
// is not complete.
func (t *Terminal) obey(data []byte) int {
	switch {
	case data[0] == '\x1b':
		return t.escape(data)
	case data[0] == '\r':
		t.col, t.pending = 0, false
	case data[0] == '\n':
		t.feed()
	case !utf8.FullRune(data):
		return 0
	default:
		r, n := utf8.DecodeRune(data)
		t.print(string(r))
		return n
	}
	return 1
}

// feed goes to the beginning of the next row.
func (t *Terminal) feed() {
	t.row, t.col, t.pending = t.row+1, 0, false
	if t.row == len(t.rows) {
		t.rows = append(t.rows, line{})
	}
	t.top = max(t.top, t.row-t.height+1)
}

func (t *Terminal) print(char string) {
	width := uniseg.StringWidth(char)
	if width == 0 {
		return
	}
	if (t.pending || t.col+width > t.width) && !t.noWrap {
		t.rows[t.row].wrapped = true
		t.feed()
	}
	t.col = min(t.col, t.width-width)
	l := &t.rows[t.row]
	for len(l.cells) < t.col+width {
		l.cells = append(l.cells, " ")
	}
	l.cells[t.col] = char
	for i := 1; i < width; i++ {
		l.cells[t.col+i] = ""
	}
	t.col += width
	if t.pending = t.col >= t.width; t.pending {
		t.col = t.width - 1
		t.pending = !t.noWrap
	}
}

func (t *Terminal) escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '\x1b':
		return 1
	case '7':
		t.saved = [2]int{t.row - t.top, t.col}
		return 2
	case '8':
		t.row, t.col, t.pending = min(t.top+t.saved[0], len(t.rows)-1), t.saved[1], false
		return 2
	case '[':
	default:
		t.Unknown = append(t.Unknown, strconv.Quote(string(data[:2])))
		return 2
	}
	for i := 2; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\x1b': // another one begins, which cancels this one
			return i
		case c >= '@' && c <= '~':
			t.control(string(data[2:i]), c)
			return i + 1
		}
	}
	return 0
}

func (t *Terminal) control(parameters string, c byte) {
	n := 1
	if v, err := strconv.Atoi(parameters); err == nil {
		n = v
	}
	switch {
	case c == 'm':
	case c == 'A':
		t.row, t.pending = max(t.top, t.row-n), false
	case c == 'K' && parameters == "":
		t.erase()
	case c == 'J' && parameters == "":
		t.erase()
		t.rows = t.rows[:t.row+1]
	case c == 'l' && parameters == "?7":
		t.noWrap = true
	case c == 'h' && parameters == "?7":
		t.noWrap = false
	default:
		t.Unknown = append(t.Unknown, strconv.Quote("\x1b["+parameters+string(c)))
	}
}

// erase empties the cursor's row from the cursor on.
func (t *Terminal) erase() {
	l := &t.rows[t.row]
	l.cells, l.wrapped = l.cells[:min(len(l.cells), t.col)], false
}

// Resize changes the size. The cursor stays on its character.
func (t *Terminal) Resize(width, height int) {
	if width == t.width && height == t.height {
		return
	}
	t.width, t.height, t.pending = width, height, false
	if t.Reflow {
		t.reflow()
	} else {
		for i := range t.rows {
			t.rows[i].cells = t.rows[i].cells[:min(len(t.rows[i].cells), width)]
		}
		t.col = min(t.col, width-1)
	}
	t.top = min(max(0, len(t.rows)-height), t.row)
}

// reflow wraps every line anew.
func (t *Terminal) reflow() {
	var rows []line
	var cells []string
	row, col := 0, -1
	for i, l := range t.rows {
		if i == t.row {
			col = len(cells) + t.col
		}
		cells = append(cells, l.cells...)
		if l.wrapped && i+1 < len(t.rows) {
			continue
		}
		first := len(rows)
		for len(cells) > t.width {
			rows = append(rows, line{cells[:t.width:t.width], true})
			cells = cells[t.width:]
		}
		rows = append(rows, line{cells: cells})
		if col >= 0 {
			row = min(first+col/t.width, len(rows)-1)
			t.col, col = min(col-(row-first)*t.width, t.width-1), -1
		}
		cells = nil
	}
	t.rows, t.row = rows, row
}

// Text returns every line, wrapped ones joined, without trailing spaces and without empty
// lines at the end.
func (t *Terminal) Text() string {
	var b strings.Builder
	for _, l := range t.rows {
		text := strings.Join(l.cells, "")
		if l.wrapped {
			b.WriteString(text)
		} else {
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Screen returns the rows of the screen.
func (t *Terminal) Screen() []string {
	var rows []string
	for _, l := range t.rows[t.top:] {
		rows = append(rows, strings.TrimRight(strings.Join(l.cells, ""), " "))
	}
	return rows[:min(len(rows), t.height)]
}

// Cursor returns the cursor's place on the screen, from 0.
func (t *Terminal) Cursor() (row, col int) { return t.row - t.top, t.col }
