package cluster

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

const secretARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-AbCdEf"

func TestSecret(t *testing.T) {
	t.Parallel()
	store := of(map[string]string{
		secretARN:                      `{"user":"consul","port":8501,"big":10000000,"on":true,"none":null,"list":[1,2],"nested":{"a":"b"},"with.dot":"x"}`,
		secretARN + "::AWSPREVIOUS:":   `{"user":"former"}`,
		secretARN + ":::0000-1111":     `{"user":"by id"}`,
		secretARN + "::blue:0000-1111": `{"user":"both"}`,
		"arn:aws:secretsmanager:us-east-1:123456789012:secret:text-AbCdEf": "just text",
		"token":      "by name",
		"/team/key":  "by path",
		"bare":       "bare",
		"secret:arn": "colons do not make an ARN",
		"arn:aws:ssm:us-east-1:123456789012:parameter/by-arn": "by ARN",
	})
	for _, c := range []struct{ valueFrom, want, err string }{
		{valueFrom: "token", want: "by name"},
		{valueFrom: "/team/key", want: "by path"},
		{valueFrom: "secret:arn", want: "colons do not make an ARN"},
		{valueFrom: "arn:aws:ssm:us-east-1:123456789012:parameter/by-arn", want: "by ARN"},
		{valueFrom: "arn:aws:ssm:us-east-1:123456789012:parameter/team/key", want: "by path"},
		{valueFrom: "arn:aws:ssm:us-east-1:123456789012:parameter/bare", want: "bare"},
		{valueFrom: "other", err: "unable to retrieve parameters from ssm: invalid parameters: no value for other; add it to the local secrets"},
		{valueFrom: "arn:aws:ssm:us-east-1:123456789012:parameter/other", err: "unable to retrieve parameters from ssm: invalid parameters: no value for arn:aws:ssm:us-east-1:123456789012:parameter/other; add it to the local secrets"},

		{valueFrom: secretARN, want: `{"user":"consul","port":8501,"big":10000000,"on":true,"none":null,"list":[1,2],"nested":{"a":"b"},"with.dot":"x"}`},
		{valueFrom: secretARN + ":user::", want: "consul"},
		{valueFrom: secretARN + ":user:AWSCURRENT:", want: "consul"},
		{valueFrom: secretARN + ":::", want: `{"user":"consul","port":8501,"big":10000000,"on":true,"none":null,"list":[1,2],"nested":{"a":"b"},"with.dot":"x"}`},
		{valueFrom: secretARN + ":user:AWSPREVIOUS:", want: "former"},
		{valueFrom: secretARN + "::AWSPREVIOUS:", want: `{"user":"former"}`},
		{valueFrom: secretARN + ":user::0000-1111", want: "by id"},
		{valueFrom: secretARN + ":user:blue:0000-1111", want: "both"},
		{valueFrom: secretARN + ":with.dot::", want: "x"},
		{valueFrom: "arn:aws:secretsmanager:us-east-1:123456789012:secret:text-AbCdEf", want: "just text"},
		// Not text: as the agent writes it, in Go's default format.
		{valueFrom: secretARN + ":port::", want: "8501"},
		{valueFrom: secretARN + ":big::", want: "1e+07"},
		{valueFrom: secretARN + ":on::", want: "true"},
		{valueFrom: secretARN + ":none::", want: "<nil>"},
		{valueFrom: secretARN + ":list::", want: "[1 2]"},
		{valueFrom: secretARN + ":nested::", want: "map[a:b]"},

		{valueFrom: secretARN + ":absent::", err: "unable to retrieve secret from asm: retrieved secret from Secrets Manager did not contain json key absent"},
		{valueFrom: "arn:aws:secretsmanager:us-east-1:123456789012:secret:text-AbCdEf:user::", err: "unable to retrieve secret from asm: retrieved secret from Secrets Manager is no JSON object"},
		{valueFrom: secretARN + ":user:green:", err: "unable to retrieve secret from asm: ResourceNotFoundException: no value for " + secretARN + "::green:; add it to the local secrets"},
		{valueFrom: "arn:aws:secretsmanager:us-east-1:123456789012:secret:none-AbCdEf", err: "unable to retrieve secret from asm: ResourceNotFoundException: no value for arn:aws:secretsmanager:us-east-1:123456789012:secret:none-AbCdEf; add it to the local secrets"},
		// One suffix, two, four, none of the secret's name.
		{valueFrom: secretARN + ":user", err: "unable to retrieve secret from asm: unexpected ARN format with parameters when trying to retrieve ASM secret"},
		{valueFrom: secretARN + ":user:", err: "unable to retrieve secret from asm: unexpected ARN format with parameters when trying to retrieve ASM secret"},
		{valueFrom: secretARN + ":user:::", err: "unable to retrieve secret from asm: unexpected ARN format with parameters when trying to retrieve ASM secret"},
		{valueFrom: "arn:aws:secretsmanager:us-east-1:123456789012:secret", err: "unable to retrieve secret from asm: unexpected ARN format with parameters when trying to retrieve ASM secret"},
	} {
		got, err := Secret(c.valueFrom, store)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%s:\n got %q, %q\nwant %q, %q", c.valueFrom, got, text, c.want, c.err)
		}
	}
}

// Errors end up in the task's stopped reason, which many may read.
func TestErrorsDoNotShowTheSecret(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	for _, document := range []string{hidden, `"` + hidden + `"`, `{"a":"` + hidden + `"}`, `{"a":` + hidden + `}`, `[` + hidden} {
		_, err := Secret(secretARN+":key::", of(map[string]string{secretARN: document}))
		if err == nil || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: error %v", document, err)
		}
	}
}

// A valueFrom is whatever a user wrote; the store is asked for some name, and
// the value is never taken from anywhere else.
func FuzzSecret(f *testing.F) {
	for _, s := range []string{"", ":", "arn:", secretARN, secretARN + ":a:b:c", "arn:aws:ssm:r:a:parameter/x", "arn:::::", "arn:aws:secretsmanager::::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, valueFrom string) {
		asked := 0
		got, err := Secret(valueFrom, func(string) (string, bool) { asked++; return "value", true })
		if err == nil {
			testkit.Equal(t, valueFrom, got, "value")
			testkit.Equal(t, "questions for "+valueFrom, asked, 1)
		}
	})
}
