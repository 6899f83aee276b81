package admission

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
		"metadata":                {annotationMeta + "Team_1", strings.Repeat("x", 512), nil},
		"long metadata":           {annotationMeta + "team", strings.Repeat("x", 513), []string{"(513 bytes)"}},
		"key with a dot":          {annotationMeta + "team.name", "shop", []string{"shop"}},
		"no key":                  {annotationMeta, "shop", []string{"shop"}},
		"long key":                {annotationMeta + strings.Repeat("k", 129), "shop", []string{"shop"}},
		"reserved key":            {annotationMeta + "consul-wan", "shop", []string{"shop"}},
		"namespace":               {annotationNamespace, "team-1", nil},
		"namespace of Consul CE":  {annotationNamespace, "default", nil},
		"namespace that is empty": {annotationNamespace, "", []string{""}},
		"partition with a dash":   {annotationPartition, "-a", []string{"-a"}},
		"long partition":          {annotationPartition, strings.Repeat("p", 64), []string{strings.Repeat("p", 64)}},
		"prefixes":                {annotationKeyPrefixes, "app/ /shared/:list,/x", []string{"/shared/:list", "/x"}},
		"policies":                {annotationPolicies, "web,team/db a.b", []string{"a.b"}},
		"no policies":             {annotationPolicies, " , ", []string{" , "}},
		"life":                    {annotationTTL, "1m", nil},
		"life of a moment":        {annotationTTL, "59s", []string{"59s"}},
		"long life":               {annotationTTL, "169h", []string{"169h"}},
		"life without unit":       {annotationTTL, "3600", []string{"3600"}},
		"another annotation":      {annotationServiceName, "/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range checkAnnotation(c.name, c.value) {
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
	for name, want := range map[string]string{"service-name": "", "service-meta-x": "",
		"service-nmae": "did you mean consul.hashicorp.com/service-name?", "zzz": "remove it"} {
		if fix, known := recognizeAnnotation(annotationPrefix + name); fix != want || known != (want == "") {
			t.Errorf("%s: known %v, fix %q, want %q", name, known, fix, want)
		}
	}
}
