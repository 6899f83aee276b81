package setup

import (
	"errors"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const mainCluster = "arn:aws:ecs:us-east-1:123456789012:cluster/main"

func TestPrincipal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster, path string
		whole         bool
		want          string
	}{
		"default":      {mainCluster, "/consul-ecs/", false, "arn:aws:iam::123456789012:role/consul-ecs/*"},
		"no slashes":   {mainCluster, "consul-ecs", false, "arn:aws:iam::123456789012:role/consul-ecs/*"},
		"many slashes": {mainCluster, "///consul-ecs//", false, "arn:aws:iam::123456789012:role/consul-ecs/*"},
		"deep": {mainCluster, "/a/b.c+d=e,f@g-h_i/", false,
			"arn:aws:iam::123456789012:role/a/b.c+d=e,f@g-h_i/*"},
		"any printable": {mainCluster, "/!~()[]{}<>/", false, "arn:aws:iam::123456789012:role/!~()[]{}<>/*"},
		"longest": {mainCluster, "/" + strings.Repeat("a", 510) + "/",
			false, "arn:aws:iam::123456789012:role/" + strings.Repeat("a", 510) + "/*"},
		"whole account":       {mainCluster, "", true, "arn:aws:iam::123456789012:role/*"},
		"whole, default path": {mainCluster, "/consul-ecs/", true, "arn:aws:iam::123456789012:role/*"},
		"whole, slash":        {mainCluster, "/", true, "arn:aws:iam::123456789012:role/*"},
		"another account, EU": {"arn:aws:ecs:eu-central-1:000000000042:cluster/x",
			"p", false, "arn:aws:iam::000000000042:role/p/*"},
		"cluster with a slash": {"arn:aws:ecs:us-east-1:123456789012:cluster/a/b",
			"p", false, "arn:aws:iam::123456789012:role/p/*"},
	} {
		if got, err := Principal(c.cluster, c.path, c.whole); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestPartitionOfTheCluster: the old program wrote "aws" into every
// ARN.
func TestPartitionOfTheCluster(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]string{
		"arn:aws:ecs:us-east-1:123456789012:cluster/main":            "arn:aws:iam::123456789012:role/consul-ecs/*",
		"arn:aws-cn:ecs:cn-north-1:123456789012:cluster/main":        "arn:aws-cn:iam::123456789012:role/consul-ecs/*",
		"arn:aws-us-gov:ecs:us-gov-west-1:123456789012:cluster/main": "arn:aws-us-gov:iam::123456789012:role/consul-ecs/*",
	} {
		s, err := Agent(Options{Cluster: cluster, RolePath: DefaultRolePath})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Methods {
			if len(m.Principals) != 1 || m.Principals[0] != want {
				t.Errorf("%s: %s trusts %q, want %q", cluster, m.Name, m.Principals, want)
			}
		}
	}
}

// TestEmptyPathDoesNotMeanTheWholeAccount: with an empty path the old program
// trusted every role of the account.
func TestEmptyPathDoesNotMeanTheWholeAccount(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "//"} {
		_, err := Agent(Options{Cluster: mainCluster, RolePath: path})
		if err == nil || !strings.Contains(err.Error(), "-trust-whole-account") {
			t.Errorf("path %q: got %v", path, err)
		}
	}
}

func TestPrincipalRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster, path string
		whole         bool
		want          string
	}{
		"wildcard": {mainCluster, "/consul*/", false,
			`role path "/consul*/": want printable ASCII without spaces, * and ?`},
		"question mark": {mainCluster, "a?", false, "without spaces"},
		"space":         {mainCluster, "a b", false, "without spaces"},
		"umlaut":        {mainCluster, "ä", false, "without spaces"},
		"line break":    {mainCluster, "a\n", false, "without spaces"},
		"an empty part": {mainCluster, "/a//b/", false, `role path "/a//b/": it has an empty part`},
		"too long": {mainCluster, strings.Repeat("a", 511), false,
			"role path of 513 characters: IAM allows 512"},
		"both":       {mainCluster, "/a/", true, "not both"},
		"short name": {"main", "a", false, `cluster "main": want the ARN of an ECS cluster`},
		"task ARN": {"arn:aws:ecs:us-east-1:123456789012:task/main/1",
			"a", false, "want the ARN of an ECS cluster"},
		"no account": {"arn:aws:ecs:us-east-1::cluster/main", "a", false, "want the ARN of an ECS cluster"},
		"another service": {"arn:aws:eks:us-east-1:123456789012:cluster/main",
			"a", false, "want the ARN of an ECS cluster"},
		"all at once":      {"", "", false, "cluster \"\": want the ARN of an ECS cluster\nrole path \"\""},
		"all at once, too": {"x", "a b", false, "cluster \"x\": want the ARN of an ECS cluster\nrole path \"a b\""},
	} {
		got, err := Principal(c.cluster, c.path, c.whole)
		testkit.Equal(t, name, got, "")
		wantPermanent(t, err, c.want)
		if _, ok := errors.AsType[*exit.UsageError](err); !ok {
			t.Errorf("%s: %v is no usage error", name, err)
		}
	}
}

func TestPartitionOption(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		enabled     bool
		name        string
		want, error string
	}{
		"off":     {},
		"named":   {enabled: true, name: "ecs-1", want: "ecs-1"},
		"default": {enabled: true, want: "default"},
		"not enabled": {name: "ecs",
			error: `partition "ecs": give -partitions-enabled, or controller.partitionsEnabled in the configuration, ` +
				`too`},
		"not a name":   {enabled: true, name: "a b", error: `partition "a b": want`},
		"quotes":       {enabled: true, name: `a"`, error: "want"},
		"hyphen first": {enabled: true, name: "-a", error: "want"},
		"too long":     {enabled: true, name: strings.Repeat("a", 65), error: "at most 64"},
	} {
		got, err := PartitionOption(c.enabled, c.name)
		testkit.Equal(t, name, got, c.want)
		testkit.ErrorContains(t, err, c.error)
	}
}

// FuzzPrincipal: whatever the path, the trust is below one path of one account,
// or refused.
func FuzzPrincipal(f *testing.F) {
	for _, path := range []string{"/consul-ecs/", "", "//", "a*", "../", "a/*/b", "\x00", "ä", ":"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := Principal(mainCluster, path, false)
		if err != nil {
			return
		}
		inner, ok := strings.CutPrefix(got, "arn:aws:iam::123456789012:role/")
		inner, ok2 := strings.CutSuffix(inner, "/*")
		if !ok || !ok2 {
			t.Errorf("%q trusts %q, want a path of the account", path, got)
		}
		if inner == "" || strings.HasPrefix(inner, "/") {
			t.Errorf("%q trusts %q, want a path that is not empty", path, got)
		}
		if strings.ContainsAny(inner, "*? \n") {
			t.Errorf("%q trusts %q, want one path", path, got)
		}
	})
}
