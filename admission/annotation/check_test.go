package annotation

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name, value string
		// wrong are the values that are refused.
		wrong []string
	}{
		"metadata":                {Meta + "Team_1", strings.Repeat("x", 512), nil},
		"long metadata":           {Meta + "team", strings.Repeat("x", 513), []string{"(513 bytes)"}},
		"key with a dot":          {Meta + "team.name", "shop", []string{"shop"}},
		"no key":                  {Meta, "shop", []string{"shop"}},
		"long key":                {Meta + strings.Repeat("k", 129), "shop", []string{"shop"}},
		"reserved key":            {Meta + "consul-wan", "shop", []string{"shop"}},
		"namespace":               {Namespace, "team-1", nil},
		"namespace of Consul CE":  {Namespace, "default", nil},
		"namespace that is empty": {Namespace, "", []string{""}},
		"partition with a dash":   {Partition, "-a", []string{"-a"}},
		"long partition":          {Partition, strings.Repeat("p", 64), []string{strings.Repeat("p", 64)}},
		"prefixes":                {KeyPrefixes, "app/ /shared/:list,/x", []string{"/shared/:list", "/x"}},
		"policies":                {Policies, "web,team/db a.b", []string{"a.b"}},
		"no policies":             {Policies, " , ", []string{" , "}},
		"life":                    {TTL, "1m", nil},
		"life of a moment":        {TTL, "59s", []string{"59s"}},
		"long life":               {TTL, "169h", []string{"169h"}},
		"life without unit":       {TTL, "3600", []string{"3600"}},
		"another annotation":      {ServiceName, "/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range Check(c.name, c.value) {
				got = append(got, p.Value)
			}
			if !slices.Equal(got, c.wrong) {
				t.Errorf("refused %q, want %q", got, c.wrong)
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"service-name": "", "service-meta-x": "", "service-nmae": "did you mean consul.hashicorp.com/service-name?", "zzz": "remove it"} {
		if fix, known := Recognize(name); fix != want || known != (want == "") {
			t.Errorf("%s: known %v, fix %q, want %q", name, known, fix, want)
		}
	}
}
