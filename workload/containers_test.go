package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/workload"
)

func TestContainersOfAWS(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"~internal~ecs~pause": true, "~internal~ecs~pause-web": true, "ecs-service-connect-oRK9o": true,
		"aws-guardduty-agent-mfjGLB": true,
		"ecs-service-connect":        false, "aws-guardduty": false, "my-ecs-service-connect-a": false,
		"Ecs-service-connect-a": false, "web": false, "": false,
	} {
		if got := workload.IsAWSContainer(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestIgnoredContainers(t *testing.T) {
	t.Parallel()
	list, err := workload.ParseIgnored(" router, datadog-*,,audit\tvendor*\n,\nlast\r\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"router": true, "audit": true, "datadog-": true, "datadog-x7": true, "vendor": true, "vendor2": true,
		"last":     true,
		"router-2": false, "rout": false, "datadog": false, "a-datadog-x": false, "vend": false, "web": false,
		"": false,
	} {
		if got := list.Has(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestMistakesOfIgnoredContainers(t *testing.T) {
	t.Parallel()
	const all, middle = ` would ignore every container: write the beginning of a name before the *`,
		`: a * may only be at the end, after the beginning of a name`
	const impossible = `: a container's name has up to 255 letters, digits, hyphens and underscores`
	longest := strings.Repeat("a", 255)
	for text, want := range map[string]string{
		"":            "",
		"a,b*":        "",
		longest:       "",
		"~internal~*": "",
		"*":           `"*"` + all,
		"a*b":         `"a*b"` + middle,
		"a**":         `"a**"` + middle,
		"*a":          `"*a"` + middle,
		"a/b":         `"a/b"` + impossible,
		"a:1,ümlaut*": `"a:1"` + impossible + `; "ümlaut*"` + impossible,
		longest + "a": `"` + longest + `a"` + impossible,
		"ok,*,x*y,**": `"*"` + all + `; "x*y"` + middle + `; "**"` + middle,
	} {
		list, err := workload.ParseIgnored(text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: -want +got:\n%s", text, d)
		}
		if err != nil && list != nil {
			t.Errorf("%q: %v beside an error", text, list)
		}
	}
}
