package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// records is a logger whose records are one line each, whatever their values, and end with the ID of the failure that a
// warning or an error is about.
type records struct {
	hclog.Logger
	identify func(text string) failure.ID
}

// Debug writes a record.
func (r *records) Debug(message string, args ...any) {
	if r.IsDebug() {
		r.Logger.Debug(fold(message), onOneLine(args)...)
	}
}

// Info writes a record.
func (r *records) Info(message string, args ...any) {
	r.Logger.Info(fold(message), onOneLine(args)...)
}

// Warn writes a record.
func (r *records) Warn(message string, args ...any) {
	r.Logger.Warn(fold(message), r.identified(message, args)...)
}

// Error writes a record.
func (r *records) Error(message string, args ...any) {
	r.Logger.Error(fold(message), r.identified(message, args)...)
}

// Log writes a record of the level.
func (r *records) Log(level hclog.Level, message string, args ...any) {
	if level >= hclog.Warn {
		args = r.identified(message, args)
	} else {
		args = onOneLine(args)
	}
	r.Logger.Log(level, fold(message), args...)
}

// With returns a logger whose records have the values, too.
func (r *records) With(args ...any) hclog.Logger {
	return &records{r.Logger.With(onOneLine(args)...), r.identify}
}

// Named returns a logger whose name has one more part.
func (r *records) Named(name string) hclog.Logger { return &records{r.Logger.Named(name), r.identify} }

// ResetNamed returns a logger with that name.
func (r *records) ResetNamed(name string) hclog.Logger {
	return &records{r.Logger.ResetNamed(name), r.identify}
}

// identified returns the values with the failure's ID as the last one.
func (r *records) identified(message string, args []any) []any {
	args = onOneLine(args)
	text := message
	for i, arg := range args {
		if i%2 == 0 && arg == logkey.ID {
			return args
		}
		if _, is := arg.(string); is && i%2 == 1 {
			text += "\n" + arg.(string)
		}
	}
	if id := r.identify(text); id != "" {
		args = append(args, logkey.ID, string(id))
	}
	return args
}

// onOneLine returns the values with line breaks replaced in strings and errors, which become strings, and durations
// with their unit, which JSON would lack.
func onOneLine(args []any) []any {
	folded := make([]any, len(args), len(args)+2)
	for i, arg := range args {
		switch v := arg.(type) {
		case error:
			folded[i] = fold(v.Error())
		case string:
			folded[i] = fold(v)
		case []string:
			lines := make([]string, len(v))
			for i, line := range v {
				lines[i] = fold(line)
			}
			folded[i] = lines
		case time.Duration:
			folded[i] = v.String()
		case fmt.Stringer:
			folded[i] = arg
			if text := v.String(); strings.ContainsAny(text, "\r\n") {
				folded[i] = fold(text)
			}
		default:
			folded[i] = arg
		}
	}
	return folded
}

// fold returns the text in one line: its lines joined by semicolons, without indentation.
func fold(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	var parts []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
