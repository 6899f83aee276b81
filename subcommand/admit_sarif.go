package subcommand

import (
	"net/url"
	"slices"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/taskdef"
)

// sarifLog is a log of the Static Analysis Results Interchange Format 2.1.0, of which CI
// systems make annotations; the members that are used.
type sarifLog struct {
	Version string     `json:"version"`
	Schema  string     `json:"$schema"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	// Invocations are about a run that failed.
	Invocations []sarifInvocation `json:"invocations,omitempty"`
	ColumnKind  string            `json:"columnKind"`
	Results     []sarifResult     `json:"results"`
}

type sarifInvocation struct {
	ExecutionSuccessful bool                `json:"executionSuccessful"`
	Notifications       []sarifNotification `json:"toolExecutionNotifications"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
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
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	} `json:"physicalLocation"`
	Logical []sarifLogical `json:"logicalLocations"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

// sarifOf returns the findings for the file that the definition was read from. Each has
// the line of what it is about in that file, or of what that was injected into. With
// strict, warnings are errors. Version is that of this program.
func sarifOf(r *admission.Result, file, version string, strict bool) sarifLog {
	results := sarifRun{ColumnKind: "utf16CodeUnits", Results: []sarifResult{}}
	results.Tool.Driver = sarifDriver{Name: "consul-ecs admit", Version: version, Rules: []sarifRule{}}
	rules := &results.Tool.Driver.Rules
	for _, f := range r.Findings {
		index := slices.IndexFunc(*rules, func(r sarifRule) bool { return r.ID == f.Code })
		if index < 0 {
			index = len(*rules)
			*rules = append(*rules, sarifRule{f.Code, sarifText{describeRule(f)}})
		}
		level := map[taskdef.Severity]string{taskdef.Error: "error", taskdef.Warn: "warning",
			admission.Info: "note"}[f.Severity]
		if strict && f.Severity == taskdef.Warn {
			level = "error"
		}
		at := sarifLocation{Logical: []sarifLogical{{f.Path}}}
		at.Physical.Artifact.URI = (&url.URL{Path: file}).String()
		at.Physical.Region.StartLine = r.Line(f)
		message := f.Message
		if f.Fix != "" {
			message += " (" + f.Fix + ")"
		}
		results.Results = append(results.Results, sarifResult{f.Code, index, level, sarifText{message},
			[]sarifLocation{at}})
	}
	return sarifLog{Version: "2.1.0", Schema: "https://json.schemastore.org/sarif-2.1.0.json",
		Runs: []sarifRun{results}}
}

// describeRule returns the text of a finding's rule; the finding's own for one that has none.
func describeRule(f admission.Finding) string {
	for _, c := range admission.Codes() {
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
