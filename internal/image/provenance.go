package main

import (
	"encoding/json"
	"maps"
	"slices"
)

// source is where this project's source code is.
const source = "https://github.com/meshtask/consul-ecs"

// page describes the build and the builder.
const page = source + "/blob/main/docs/RELEASES.md"

// statement is an in-toto Statement v1 with the predicate of SLSA provenance v1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// resource is a file or an image that was built, or what it was built from.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]any    `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance returns the provenance of the subjects, which are made from the programs. It has no time and nothing of
// the machine: the same commit gives the same.
func (o *options) provenance(subjects []resource, programs []program) ([]byte, error) {
	s := statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1", Subject: subjects,
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = page + "#provenance"
	definition.ExternalParameters = map[string]string{
		"target": "release", "VERSION": o.version, "IMAGE": o.name, "DEFAULT_IMAGE": o.defaultImage,
	}
	modules := map[string]resource{}
	settings := map[string]map[string]string{}
	for _, p := range programs {
		build := map[string]string{}
		for _, s := range p.info.Settings {
			build[s.Key] = s.Value
		}
		settings[p.platform()] = build
		for _, m := range p.modules {
			r := resource{URI: m.purl()}
			if m.sum != "" {
				r.Digest = map[string]string{"dirHash": m.dirHash()}
			}
			if m.path != p.info.Main.Path {
				modules[m.path] = r
			}
		}
	}
	definition.InternalParameters = map[string]any{"buildSettings": settings, "SOURCE_DATE_EPOCH": o.created.Unix()}
	definition.ResolvedDependencies = []resource{{
		URI: "git+" + source + "@" + o.revision, Digest: map[string]string{"gitCommit": o.revision},
	}}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, modules[path])
	}
	s.Predicate.RunDetails.Builder.ID = o.builder
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}
