// Package failure has what can go wrong in a mesh task: an ID for each failure, how a log line
// shows it, why it happens, and what to do.
//
// Flow: 1. internal/cli asks Of for the ID of a record or of a command's error, and writes it at
// the end of the line; 2. consul-ecs explain and docs/TROUBLESHOOTING.md print the rest.
//
// Owns: IDs and their texts. An ID keeps its meaning for ever.
// Never does: decide what is retried (consulutil.Classify does).
// Start reading at: Failure, then Of.
package failure

import (
	"slices"
	"strings"
)

// ID names a failure, such as CE-LOGIN-TAG.
type ID string

// Failure is what is known about an ID.
type Failure struct {
	ID ID `json:"id"`
	// Title is what has happened, in a line.
	Title string `json:"title"`
	// Why is the usual cause, the most frequent one first.
	Why string `json:"why"`
	// Fix is what to do.
	Fix string `json:"fix"`
	// Show is a command that shows the cause; empty when the log line has all.
	Show string `json:"show,omitempty"`
	// signs are fragments of log lines. One of them is enough, with one of also if there are any.
	signs, also []string
}

// All returns the failures, in the order in which Of looks for their signs: special ones first.
func All() []Failure {
	return slices.Concat(trafficFailures(), taskFailures(), volumeFailures(), startFailures(), awsFailures(),
		credentialFailures(), loginFailures(), signedFailures(), methodFailures(), tokenFailures(), tlsFailures(),
		serverFailures(), connectionFailures(), runningFailures(), proxyFailures())
}

// Find returns the failure with the ID, in any case of letters.
func Find(id string) (Failure, bool) {
	all := All()
	i := slices.IndexFunc(all, func(f Failure) bool { return strings.EqualFold(string(f.ID), id) })
	if i < 0 {
		return Failure{}, false
	}
	return all[i], true
}

// Of returns the ID of a record by its text, message and error: the one that the text has in brackets, or that of the
// first failure with a sign in it. It is empty for what has none.
func Of(text string) ID {
	if _, after, found := strings.Cut(text, "["+prefix); found {
		if id, _, closed := strings.Cut(after, "]"); closed {
			if f, known := Find(prefix + id); known {
				return f.ID
			}
		}
	}
	for _, f := range All() {
		if hasOne(text, f.signs) && (f.also == nil || hasOne(text, f.also)) {
			return f.ID
		}
	}
	return ""
}

func hasOne(text string, fragments []string) bool {
	return slices.ContainsFunc(fragments, func(f string) bool { return strings.Contains(text, f) })
}

const prefix = "CE-"

// Mark returns the text with its ID at the end, as Append does.
func Mark(text string) string { return Append(text, Of(text)) }

// Append returns the text with the ID in brackets at the end, unless there is none or the text shows it already.
func Append(text string, id ID) string {
	if id == "" || strings.Contains(text, "["+string(id)+"]") {
		return text
	}
	return text + " [" + string(id) + "]"
}
