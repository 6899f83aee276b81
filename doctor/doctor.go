package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/failure"
)

// Limit bounds an examination.
const Limit = 4500 * time.Millisecond

// Result is what has come of a check.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warned  Result = "warning"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Check is one question about the task.
type Check struct {
	Name string
	// Ask returns what it has found, in a few words. Its error is a failure, a *SkipError the reason why there is no
	// answer.
	Ask func(context.Context) (string, error)
}

// SkipError says why a check was not made.
type SkipError struct{ Reason string }

func (e *SkipError) Error() string { return e.Reason }

// Skipf makes a SkipError.
func Skipf(format string, args ...any) error { return &SkipError{fmt.Sprintf(format, args...)} }

// Finding is the answer to a check.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Found is what was found, or the error.
	Found string `json:"found"`
	// ID and Fix are of a failure that is known.
	ID  failure.ID `json:"id,omitempty"`
	Fix string     `json:"fix,omitempty"`
}

// Examine asks all checks at the same time and returns their findings in the order of the checks. A check that does not
// answer within the limit has failed; it ends with the process.
func Examine(ctx context.Context, limit time.Duration, checks []Check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers := make([]chan Finding, len(checks))
	for i, c := range checks {
		answers[i] = make(chan Finding, 1)
		go func() { answers[i] <- ask(ctx, c) }()
	}
	// What obeys its context answers a moment later than the context ends.
	late := make(chan struct{})
	timer := time.AfterFunc(limit+limit/20, func() { close(late) })
	defer timer.Stop()
	findings := make([]Finding, len(checks))
	for i, c := range checks {
		select {
		case findings[i] = <-answers[i]:
			continue
		case <-late:
		}
		select {
		case findings[i] = <-answers[i]: // it has answered while an earlier one was waited for
		default:
			findings[i] = finding(c.Name, "", fmt.Errorf("no answer within %s", limit))
		}
	}
	return findings
}

func ask(ctx context.Context, c Check) Finding {
	found, err := c.Ask(ctx)
	return finding(c.Name, found, err)
}

func finding(check, found string, err error) Finding {
	var skip *SkipError
	switch {
	case err == nil:
		return Finding{Check: check, Result: OK, Found: found}
	case errors.As(err, &skip):
		return Finding{Check: check, Result: Skipped, Found: skip.Reason}
	}
	f := Finding{Check: check, Result: Failed, Found: oneLine(err.Error())}
	if known, ok := failure.Find(string(failure.Of(f.Found))); ok {
		f.ID, f.Fix = known.ID, known.Fix
	}
	return f
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// FailedOf returns the findings that have failed.
func FailedOf(all []Finding) (failed []Finding) {
	for _, f := range all {
		if f.Result == Failed {
			failed = append(failed, f)
		}
	}
	return failed
}

// Write prints findings for a person, a line each, and the remedy of a failure below it.
func Write(w io.Writer, all []Finding) error {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Check))
	}
	for _, f := range all {
		text := fmt.Sprintf("%-7s %-*s  %s\n", f.Result, width, f.Check, failure.Mark(f.Found))
		if f.Fix != "" {
			text += fmt.Sprintf("%*s  fix: %s\n", width+8, "", f.Fix)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}
