package taskdef

import (
	"strings"
	"testing"
)

func TestCheckText(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"{}":                        "",
		"\ufffd":                    "", // the character itself is text
		"":                          "line 1, column 1: the file is empty",
		" \n\t\r\n":                 "line 1, column 1: the file is empty",
		"\xef\xbb\xbf{}":            "line 1, column 1: the file begins with a byte order mark: save it as UTF-8 without BOM",
		"\xff\xfe{\x00}\x00":        "line 1, column 1: the file is UTF-16: save it as UTF-8",
		"\xfe\xff\x00{\x00}":        "line 1, column 1: the file is UTF-16: save it as UTF-8",
		"a\n é\xe9":                 "line 2, column 3: byte 0xe9 is not UTF-8: save the file as UTF-8",
		strings.Repeat("x\n", 9999): "",
	} {
		got := ""
		if err := CheckText([]byte(doc)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q: got %q, want %q", doc, got, want)
		}
	}
}

func FuzzCheckText(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte("a\n\xe9"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := CheckText(doc)
		if err == nil {
			return
		}
		fault, ok := err.(*Fault)
		if !ok {
			t.Fatalf("got a %T, want a *Fault: %v", err, err)
		}
		if min(fault.Line, fault.Column) < 1 {
			t.Errorf("line %d, column %d, want both from 1: %v", fault.Line, fault.Column, err)
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		`a "b" \n é 漢`:                  `a "b" \n é 漢`,
		"a\n::error::b\r\x1b[31m\x00":   `a\n::error::b\r\x1b[31m\x00`,
		"line\u2028and \u202eother way": `line\u2028and \u202eother way`,
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}
