package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// written returns what a command writes to standard error that logs by do and returns its error.
func written(t *testing.T, do func(*cli.Invocation) error) string {
	t.Helper()
	var stderr bytes.Buffer
	app := cli.App{
		Name: "program", Commands: map[string]cli.Command{
			"do": {Run: func(_ context.Context, inv *cli.Invocation) error { return do(inv) }},
		},
		Identify: func(text string) failure.ID {
			if strings.Contains(text, "broken") {
				return "CE-BROKEN"
			}
			return ""
		},
	}
	cli.Main(app, []string{"do"}, func(string) string { return "" }, nil, &stderr, &stderr)
	return stderr.String()
}

func TestARecordIsOneLineAndEndsWithItsID(t *testing.T) {
	t.Parallel()
	const text = "<Error>\n  <Code>broken</Code>\r\n\n</Error>"
	for name, log := range map[string]func(*cli.Invocation){
		"warning": func(inv *cli.Invocation) { inv.Log.Warn("refused", "error", errors.New(text)) },
		"error":   func(inv *cli.Invocation) { inv.Log.Named("a").Error("refused", "error", text) },
		"with values": func(inv *cli.Invocation) {
			inv.Log.With("a", "b").ResetNamed("x").Warn("refused", "error", text)
		},
		"message": func(inv *cli.Invocation) { inv.Log.Warn("broken\ntwice") },
		"value of the logger": func(inv *cli.Invocation) {
			inv.Log.With("reason", "twice\nbroken").Warn("broken", "lines", []string{"a\nb"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := written(t, func(inv *cli.Invocation) error { log(inv); return nil })
			testkit.Equal(t, "lines", strings.Count(got, "\n"), 1)
			if !strings.HasSuffix(got, "id=CE-BROKEN\n") {
				t.Errorf("got %q, want the ID at its end", got)
			}
		})
	}
	quiet := written(t, func(inv *cli.Invocation) error { inv.Log.Info("broken", "error", text); return nil })
	if strings.Contains(quiet, "CE-") || strings.Count(quiet, "\n") != 1 {
		t.Errorf("information: got %q, want one line without an ID", quiet)
	}
}

func TestJSONRecordsHaveTheIDAsAMember(t *testing.T) {
	t.Parallel()
	got := written(t, func(inv *cli.Invocation) error {
		if err := inv.UseLogger("INFO", true); err != nil {
			return err
		}
		inv.Log.Error("refused", "error", errors.New("broken\ntwice"), "elapsed", 1500*time.Millisecond)
		return nil
	})
	var record map[string]any
	if err := json.Unmarshal([]byte(got), &record); err != nil {
		t.Fatalf("%v in %q", err, got)
	}
	testkit.Equal(t, "id", record["id"], any("CE-BROKEN"))
	testkit.Equal(t, "error", record["error"], any("broken; twice"))
	testkit.Equal(t, "elapsed", record["elapsed"], any("1.5s"))
}

func TestErrorsOfACommandEndWithTheirID(t *testing.T) {
	t.Parallel()
	usage := written(t, func(*cli.Invocation) error { return exit.Usagef("it is broken") })
	testkit.Equal(t, "usage", usage, "program do: it is broken [CE-BROKEN]\n")
	marked := written(t, func(*cli.Invocation) error { return exit.Usagef("it is broken [CE-BROKEN]") })
	testkit.Equal(t, "marked", marked, "program do: it is broken [CE-BROKEN]\n")
	logged := written(t, func(*cli.Invocation) error { return errors.New("broken") })
	if !strings.HasSuffix(logged, "id=CE-BROKEN\n") {
		t.Errorf("got %q, want the ID at its end", logged)
	}
}

// TestEnvironmentTurnsEveryRecordIntoJSON without a configuration, also those of wrong usage.
func TestEnvironmentTurnsEveryRecordIntoJSON(t *testing.T) {
	t.Parallel()
	app := cli.App{Name: "program", Commands: map[string]cli.Command{
		"do": {Run: func(_ context.Context, inv *cli.Invocation) error {
			if err := inv.UseLogger("INFO", false); err != nil {
				return err
			}
			inv.Log.Info("begin")
			return exit.Usagef("wrong\nusage")
		}},
	}}
	for args, want := range map[string][]string{
		"do": {"begin ", "command failed wrong; usage"}, "do -x": {"command failed flag provided but not defined: -x"},
	} {
		var stderr bytes.Buffer
		code := cli.Main(app, strings.Fields(args), func(k string) string {
			return map[string]string{"CONSUL_ECS_LOG_JSON": "true"}[k]
		}, nil, &stderr, &stderr)
		testkit.Equal(t, args+": code", code, exit.CodeUsage)
		var got []string
		for line := range strings.Lines(stderr.String()) {
			var record struct {
				Message string `json:"@message"`
				Error   string `json:"error"`
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%s: %v in %q", args, err, line)
			}
			got = append(got, record.Message+" "+record.Error)
		}
		testkit.Equal(t, args, got, want)
	}
}
