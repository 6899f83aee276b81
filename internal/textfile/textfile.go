// Package textfile reads what people write by hand: JSON and YAML documents.
//
// Flow: 1. Read takes a file of bounded size and says what else a path may be;
// 2. Check refuses what is not UTF-8; 3. At turns an offset into the line and
// column that an editor shows; 4. OneLine makes a text of a document fit for a log.
//
// Owns: the words for files that are no text. Never does: know a format.
// Start reading at: Read.
package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Fault is a place in a document and what is wrong there.
type Fault struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int
	Message      string
}

// Error is "line 3, column 7: message".
func (f *Fault) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
}

// At is a fault at a byte of the document, or at its end.
func At(doc []byte, offset int, message string) *Fault {
	before := doc[:max(0, min(offset, len(doc)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &Fault{
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  utf8.RuneCount(before[lineStart:]) + 1,
		Message: message,
	}
}

// Read returns the content of a file of at most limit bytes. The error names
// the path and what is there instead.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close()
	return ReadFrom(f, path, limit)
}

// ReadFrom is Read for an open file, or another source, of that name.
func ReadFrom(r io.Reader, name string, limit int64) ([]byte, error) {
	// A pipe or a device has no size, so the reading itself is bounded.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s is a directory: want a file", name)
	case err != nil:
		return nil, plain(name, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("%s is larger than %d KiB: is it the right file?", name, limit>>10)
	}
	return data, nil
}

// plain is the error without the name of a system call.
func plain(path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// OneLine is a text of which a terminal or a log shows one line: what cannot be printed,
// such as a line break in a name, is written as Go does in a string.
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

// Check returns a *Fault when the document is empty or not plain UTF-8. As
// editors on Windows write other encodings, they are named.
func Check(doc []byte) error {
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
			return At(doc, offset, fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", doc[offset]))
		}
		offset += size
	}
	return nil
}
