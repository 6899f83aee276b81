package aclrules

import (
	"fmt"
	"strings"
	"testing"
)

// hundred returns a token of 100 policies with 100 rules each.
func hundred(b *testing.B) (texts []string, rules []Sourced) {
	b.Helper()
	for p := range 100 {
		var text strings.Builder
		for i := range 25 {
			name := fmt.Sprintf("team-%d-service-%d", p, i)
			fmt.Fprintf(&text, "service %q { policy = \"write\" }\nservice_prefix %q { policy = \"read\" }\n", name, name[:len(name)-1])
			fmt.Fprintf(&text, "key_prefix %q { policy = \"write\" }\nnode_prefix %q { policy = \"read\" }\n", "app/"+name+"/", name)
		}
		texts = append(texts, text.String())
	}
	return texts, pool(b, texts...)
}

func BenchmarkParse(b *testing.B) {
	texts, _ := hundred(b)
	b.SetBytes(int64(len(texts[0])))
	for b.Loop() {
		if _, err := Parse(texts[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	_, rules := hundred(b)
	b.ReportAllocs()
	for b.Loop() {
		Merge(rules, Options{Default: Denied})
	}
}

func BenchmarkDecide(b *testing.B) {
	_, rules := hundred(b)
	table := Merge(rules, Options{Default: Denied})
	queries := []Query{
		{Service, "team-42-service-17", WriteAccess}, {Service, "team-42-service-17-sidecar-proxy", WriteAccess},
		{Key, "app/team-7-service-3/config", ReadAccess}, {Node, "ip-10-0-0-1", ReadAccess},
		{Intention, "team-1-service-1", ReadAccess},
		{Operator, "", ReadAccess}, {Key, "app/team-7-service-3/", WritePrefix}, {Service, "other", ReadAccess},
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.Decide(queries[i%len(queries)])
	}
}
