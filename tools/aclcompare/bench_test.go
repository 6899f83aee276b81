package aclcompare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/consul/acl"
	"github.com/meshtask/consul-ecs/aclrules"
)

// hundred returns a token's 100 policies with 100 rules each.
func hundred() (texts []string) {
	for p := range 100 {
		var text strings.Builder
		for i := range 25 {
			name := fmt.Sprintf("team-%d-service-%d", p, i)
			fmt.Fprintf(&text, "service %q { policy = \"write\" }\nservice_prefix %q { policy = \"read\" }\n", name,
				name[:len(name)-1])
			fmt.Fprintf(&text, "key_prefix %q { policy = \"write\" }\nnode_prefix %q { policy = \"read\" }\n",
				"app/"+name+"/", name)
		}
		texts = append(texts, text.String())
	}
	return texts
}

// sides times the same work of both. prepare is not timed.
func sides[O, T any](
	b *testing.B, prepareOurs func() (O, error), work func(O), prepareTheirs func() (T, error), theirWork func(T),
) {
	b.Helper()
	run := func(name string, f func(b *testing.B)) { b.Run(name, func(b *testing.B) { b.ReportAllocs(); f(b) }) }
	run("ours", func(b *testing.B) { loop(b, prepareOurs, work) })
	run("consul", func(b *testing.B) { loop(b, prepareTheirs, theirWork) })
}

func loop[T any](b *testing.B, prepare func() (T, error), work func(T)) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		with, err := prepare()
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		work(with)
	}
}

// BenchmarkParse parses one policy of 100 rules.
func BenchmarkParse(b *testing.B) {
	text := hundred()[0]
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ours(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("consul", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := theirs(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMerge turns parsed policies into what answers questions.
func BenchmarkMerge(b *testing.B) {
	texts := hundred()
	sides(b,
		func() ([]aclrules.Sourced, error) { return ours(texts...) },
		func(rules []aclrules.Sourced) { aclrules.Merge(rules, aclrules.Options{Default: aclrules.Denied}) },
		func() ([]*acl.Policy, error) { return theirs(texts...) },
		func(parsed []*acl.Policy) {
			if _, err := acl.NewPolicyAuthorizerWithDefaults(acl.DenyAll(), parsed, nil); err != nil {
				b.Fatal(err)
			}
		})
}

// BenchmarkDecide asks one question about a token of 10,000 rules.
func BenchmarkDecide(b *testing.B) {
	texts := hundred()
	rules, err := ours(texts...)
	if err != nil {
		b.Fatal(err)
	}
	parsed, err := theirs(texts...)
	if err != nil {
		b.Fatal(err)
	}
	table := aclrules.Merge(rules, aclrules.Options{Default: aclrules.Denied})
	authorizer, err := acl.NewPolicyAuthorizerWithDefaults(acl.DenyAll(), parsed, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		query aclrules.Query
	}{
		{
			"exact", aclrules.Query{
				Resource: aclrules.Service, Segment: "team-42-service-17", Access: aclrules.WriteAccess,
			},
		},
		{
			"prefix", aclrules.Query{
				Resource: aclrules.Service, Segment: "team-42-service-17-sidecar-proxy", Access: aclrules.WriteAccess,
			},
		},
		{
			"key", aclrules.Query{
				Resource: aclrules.Key, Segment: "app/team-7-service-3/config", Access: aclrules.ReadAccess,
			},
		},
		{
			"write-prefix", aclrules.Query{
				Resource: aclrules.Key, Segment: "app/team-7-service-3/", Access: aclrules.WritePrefix,
			},
		},
		{
			"intention", aclrules.Query{
				Resource: aclrules.Intention, Segment: "team-1-service-1", Access: aclrules.ReadAccess,
			},
		},
		{"all-intentions", aclrules.Query{Resource: aclrules.Intention, Segment: "*", Access: aclrules.WriteAccess}},
		{"scalar", aclrules.Query{Resource: aclrules.Operator, Access: aclrules.ReadAccess}},
		{"none", aclrules.Query{Resource: aclrules.Node, Segment: "ip-10-0-0-1", Access: aclrules.ReadAccess}},
	} {
		b.Run(c.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.Decide(c.query)
			}
		})
		b.Run(c.name+"/consul", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := acl.Enforce(authorizer, acl.Resource(c.query.Resource), c.query.Segment,
					string(c.query.Access), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
