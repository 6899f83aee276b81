package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom returns the software bill of materials of a program, CycloneDX in JSON. The same program has the same.
func (o *options) sbom(p program) ([]byte, error) {
	digest := sha256.Sum256(p.data)
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.Nil, digest[:]).String()
	bom.Metadata = &cdx.Metadata{
		Timestamp: o.timestamp(),
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{
			Type: cdx.ComponentTypeApplication, Name: p.info.Main.Path + "/internal/image",
		}}},
	}
	var components []cdx.Component
	var dependencies []cdx.Dependency
	refs := map[string]string{}
	for _, m := range p.modules {
		refs[m.path] = m.purl()
	}
	for _, m := range p.modules {
		c := cdx.Component{
			BOMRef: m.purl(), PackageURL: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			Supplier: m.supplier(), Licenses: &cdx.Licenses{m.licenseChoice()},
			ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeSourceDistribution, URL: m.source()}},
		}
		if m.sum != "" {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: m.dirHash()}}
		}
		if m.path == p.info.Main.Path {
			c.Type, c.Name, c.Version = cdx.ComponentTypeApplication, p.name, o.version
			c.PackageURL += "#cmd/" + p.name
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}
			bom.Metadata.Component, bom.Metadata.Supplier = &c, c.Supplier
		} else {
			components = append(components, c)
		}
		var requires []string
		for _, path := range slices.Sorted(maps.Keys(m.requires)) {
			requires = append(requires, refs[path])
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: m.purl(), Dependencies: &requires})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var b bytes.Buffer
	encoder := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}

// purl returns the package URL.
func (m *module) purl() string {
	return "pkg:golang/" + strings.ToLower(m.path) + "@" + strings.ReplaceAll(m.version, "+", "%2B")
}

// dirHash returns the module's hash in go.sum, which is a SHA-256 of all its files, in hexadecimal.
func (m *module) dirHash() string {
	sum, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.sum, "h1:")) // go has compared it
	return hex.EncodeToString(sum)
}

// supplier returns who publishes the module, by its path.
func (m *module) supplier() *cdx.OrganizationalEntity {
	host, rest, _ := strings.Cut(m.path, "/")
	switch host {
	case stdlib, "golang.org", "google.golang.org":
		return &cdx.OrganizationalEntity{Name: "The Go Authors", URL: &[]string{"https://go.dev"}}
	case "github.com":
		owner, _, _ := strings.Cut(rest, "/")
		return &cdx.OrganizationalEntity{Name: owner, URL: &[]string{"https://github.com/" + owner}}
	}
	return &cdx.OrganizationalEntity{Name: host, URL: &[]string{"https://" + host}}
}

func (m *module) licenseChoice() cdx.LicenseChoice {
	if len(m.licenses) == 1 {
		return cdx.LicenseChoice{License: &cdx.License{ID: m.license()}}
	}
	return cdx.LicenseChoice{Expression: m.license()}
}
