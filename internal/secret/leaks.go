package secret

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Leaks finds a secret in texts: as it is, in base64 also in the middle of other data, in
// URLs, and escaped for JSON.
type Leaks struct {
	plain string
	// encoded are the texts that a base64 text of data with the secret has in it.
	encoded []string
}

// shortest is the length of a base64 text that is looked for: shorter ones are in any
// text by chance.
const shortest = 8

// NewLeaks looks for a secret; for nothing when it is empty.
func NewLeaks(token Value) *Leaks {
	l := &Leaks{plain: token.Reveal()}
	if token.Empty() {
		return l
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		// Of the first and the last character some bits may be of what is before and
		// behind.
		for before, skip := range []int{0, 2, 3} {
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + l.plain))
			if core := text[skip : (before+len(l.plain))*8/6]; len(core) >= shortest {
				l.encoded = append(l.encoded, core)
			}
		}
	}
	return l
}

// Find returns the form in which the text has the secret: plain, base64 or URL-encoded;
// empty when it has not.
func (l *Leaks) Find(text string) string {
	if l.plain == "" {
		return ""
	}
	for _, layer := range unescaped(text) {
		if strings.Contains(layer, l.plain) {
			return "plain"
		}
		for _, decoded := range []string{percentDecoded(layer), percentDecoded(strings.ReplaceAll(layer, "+", " "))} {
			if strings.Contains(decoded, l.plain) {
				return "URL-encoded"
			}
			// Lines of base64 are wrapped by many programs.
			if l.hasEncoded(layer) || l.hasEncoded(decoded) || l.hasEncoded(unwrapped(decoded)) {
				return "base64"
			}
		}
	}
	return ""
}

func (l *Leaks) hasEncoded(text string) bool {
	return slices.ContainsFunc(l.encoded, func(core string) bool { return strings.Contains(text, core) })
}

// unwrapped returns the text without white space.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), "") }

// Redact returns the text without the secret. A line where it is encoded is left out.
func (l *Leaks) Redact(text string) string {
	if l.Find(text) == "" {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		line = strings.ReplaceAll(line, l.plain, redacted)
		if l.Find(line) != "" {
			line = redacted + "\n"
		}
		lines[i] = line
	}
	if text = strings.Join(lines, ""); l.Find(text) != "" { // over several lines
		return redacted + "\n"
	}
	return text
}

// ErrLeak is the error of a writer that would have written the secret.
var ErrLeak = errors.New("the output would have the secret in it: nothing was written")

// Writer writes to w what has no secret in it, in each call alone.
func (l *Leaks) Writer(w io.Writer) io.Writer { return leakWriter{w, l, false} }

// Redactor writes to w what Redact leaves of each call.
func (l *Leaks) Redactor(w io.Writer) io.Writer { return leakWriter{w, l, true} }

type leakWriter struct {
	io.Writer
	leaks  *Leaks
	redact bool
}

func (w leakWriter) Write(p []byte) (int, error) {
	text := string(p)
	if w.leaks.Find(text) == "" {
		return w.Writer.Write(p)
	}
	if !w.redact {
		return 0, ErrLeak
	}
	_, err := io.WriteString(w.Writer, w.leaks.Redact(text))
	return len(p), err
}

// unescaped returns the text, and the text without the escapes of one and of two JSON strings around each other: the
// configuration of a task is JSON in JSON.
func unescaped(text string) []string {
	layers := []string{text}
	for range 2 {
		if !strings.Contains(text, `\`) {
			break
		}
		text = jsonDecoded(text)
		layers = append(layers, text)
	}
	return layers
}

// jsonDecoded replaces the escapes of JSON strings in any text.
func jsonDecoded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n', 'r', 't', 'b', 'f': // no token has these
			b.WriteByte(' ')
		case 'u':
			if i+4 < len(text) {
				if r, err := strconv.ParseUint(text[i+1:i+5], 16, 32); err == nil {
					b.WriteRune(rune(r))
					i += 4
				}
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// percentDecoded replaces each %XX in any text.
func percentDecoded(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := url.PathUnescape(text[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
