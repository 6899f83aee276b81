package admission

import (
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// SARIF is a log of the Static Analysis Results Interchange Format 2.1.0, of which CI
// systems make annotations.
type SARIF struct {
	Version string     `json:"version"`
	Schema  string     `json:"$schema"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string    `json:"id"`
	ShortDescription sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region struct {
		StartLine int `json:"startLine"`
	} `json:"region"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

// SARIF returns the findings for the file that the definition was read from. Each has
// the line of what it is about in that file, or of what that was injected into. With
// strict, warnings are errors. Version is that of this program.
func (r *Result) SARIF(file, version string, strict bool) SARIF {
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "consul-ecs admit", Version: version, Rules: []sarifRule{}}},
		ColumnKind: "utf16CodeUnits", Results: []sarifResult{},
	}
	rules := &run.Tool.Driver.Rules
	for _, f := range r.Findings {
		index := slices.IndexFunc(*rules, func(rule sarifRule) bool { return rule.ID == f.Code })
		if index < 0 {
			index = len(*rules)
			*rules = append(*rules, sarifRule{f.Code, sarifText{describe(f)}})
		}
		level := map[taskdef.Severity]string{taskdef.Error: "error", taskdef.Warn: "warning", Info: "note"}[f.Severity]
		if strict && f.Severity == taskdef.Warn {
			level = "error"
		}
		location := sarifLocation{Logical: []sarifLogical{{f.Path}}}
		location.Physical.Artifact.URI = file
		location.Physical.Region.StartLine = r.Before.Line(f.Path)
		message := f.Message
		if f.Fix != "" {
			message += " (" + f.Fix + ")"
		}
		run.Results = append(run.Results, sarifResult{f.Code, index, level, sarifText{message}, []sarifLocation{location}})
	}
	return SARIF{Version: "2.1.0", Schema: "https://json.schemastore.org/sarif-2.1.0.json", Runs: []sarifRun{run}}
}

// describe is the text of a finding's rule; the finding's own for one that has none.
func describe(f Finding) string {
	for _, c := range Codes() {
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
