package taskdef

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is a place in a document and what is wrong there.
type Fault struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	Message      string
}

// Error returns "line 3, column 7: message".
func (f *Fault) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
}

// faultAt returns a fault at a byte of the document, or at its end.
func faultAt(doc []byte, offset int, message string) *Fault {
	before := doc[:max(0, min(offset, len(doc)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &Fault{
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  utf8.RuneCount(before[lineStart:]) + 1,
		Message: message,
	}
}

// CheckText returns a *Fault when the document is empty or not plain UTF-8. As
// editors on Windows write other encodings, they are named.
func CheckText(doc []byte) error {
	for _, m := range []struct{ mark, message string }{
		{"\xef\xbb\xbf", "the file begins with a byte order mark: save it as UTF-8 without BOM"},
		{"\xff\xfe", "the file is UTF-16: save it as UTF-8"},
		{"\xfe\xff", "the file is UTF-16: save it as UTF-8"},
	} {
		if strings.HasPrefix(string(doc[:min(len(doc), 4)]), m.mark) {
			return &Fault{Line: 1, Column: 1, Message: m.message}
		}
	}
	if len(bytes.TrimSpace(doc)) == 0 {
		return &Fault{Line: 1, Column: 1, Message: "the file is empty"}
	}
	for offset := 0; offset < len(doc); {
		r, size := utf8.DecodeRune(doc[offset:])
		if r == utf8.RuneError && size == 1 {
			return faultAt(doc, offset, fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", doc[offset]))
		}
		offset += size
	}
	return nil
}

// OneLine returns a text of which a terminal or a log shows one line: what cannot be printed, such as a line
// break in a name, is written as Go does in a string.
func OneLine(text string) string {
	var line strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		line.WriteString(quoted[1 : len(quoted)-1])
	}
	return line.String()
}
