package sarif

import (
	"slices"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/admission/permission"
	"github.com/meshtask/consul-ecs/admission/taskrole"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Log is a log of the Static Analysis Results Interchange Format 2.1.0, of which CI
// systems make annotations.
type Log struct {
	Version string `json:"version"`
	Schema  string `json:"$schema"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool       tool     `json:"tool"`
	ColumnKind string   `json:"columnKind"`
	Results    []result `json:"results"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Rules   []rule `json:"rules"`
}

type rule struct {
	ID               string      `json:"id"`
	ShortDescription multiformat `json:"shortDescription"`
}

type multiformat struct {
	Text string `json:"text"`
}

type result struct {
	RuleID    string      `json:"ruleId"`
	RuleIndex int         `json:"ruleIndex"`
	Level     string      `json:"level"`
	Message   multiformat `json:"message"`
	Locations []location  `json:"locations"`
}

type location struct {
	Physical physical  `json:"physicalLocation"`
	Logical  []logical `json:"logicalLocations"`
}

type physical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region struct {
		StartLine int `json:"startLine"`
	} `json:"region"`
}

type logical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

// Of returns the findings for the file that the definition was read from. Each has
// the line of what it is about in that file, or of what that was injected into. With
// strict, warnings are errors. Version is that of this program.
func Of(r *admission.Result, file, version string, strict bool) Log {
	results := run{
		Tool:       tool{driver{Name: "consul-ecs admit", Version: version, Rules: []rule{}}},
		ColumnKind: "utf16CodeUnits", Results: []result{},
	}
	rules := &results.Tool.Driver.Rules
	for _, f := range r.Findings {
		index := slices.IndexFunc(*rules, func(r rule) bool { return r.ID == f.Code })
		if index < 0 {
			index = len(*rules)
			*rules = append(*rules, rule{f.Code, multiformat{describe(f)}})
		}
		level := map[taskdef.Severity]string{taskdef.Error: "error", taskdef.Warn: "warning", admission.Info: "note"}[f.Severity]
		if strict && f.Severity == taskdef.Warn {
			level = "error"
		}
		at := location{Logical: []logical{{f.Path}}}
		at.Physical.Artifact.URI = file
		at.Physical.Region.StartLine = r.Before.Line(f.Path)
		message := f.Message
		if f.Fix != "" {
			message += " (" + f.Fix + ")"
		}
		results.Results = append(results.Results, result{f.Code, index, level, multiformat{message}, []location{at}})
	}
	return Log{Version: "2.1.0", Schema: "https://json.schemastore.org/sarif-2.1.0.json", Runs: []run{results}}
}

// describe is the text of a finding's rule; the finding's own for one that has none.
func describe(f admission.Finding) string {
	for _, c := range slices.Concat(admission.Codes(), admission.TokenCodes(), permission.Codes(), taskrole.Codes()) {
		if c.Code == f.Code {
			return c.Text
		}
	}
	for _, rule := range taskdef.Rules() {
		if rule.Code == f.Code {
			return rule.Text
		}
	}
	return f.Message
}
