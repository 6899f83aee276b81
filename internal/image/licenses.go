package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licenseName matches the names of files with licences and notices.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-_.].*)?$`)

// docsLicense is the extension of licences of documentation.
const docsLicense = ".docs"

// addLicenses adds the licences and notices in a directory of the module in root.
func (m *module) addLicenses(dir, root string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		ext := filepath.Ext(f.Name())
		if f.IsDir() || !licenseName.MatchString(f.Name()) || ext == ".go" || ext == docsLicense {
			continue
		}
		file := filepath.Join(dir, f.Name())
		name, err := filepath.Rel(root, file)
		if err != nil || m.texts[name] != nil {
			continue
		}
		if m.texts[name], err = os.ReadFile(file); err != nil {
			return err
		}
		if err := m.identify(name); err != nil {
			return err
		}
	}
	return nil
}

// permitted are the licences that a module may have, see docs/RELEASES.md.
var permitted = []string{"Apache-2.0", "BSD-3-Clause", "MIT", "MPL-2.0"}

// identify adds the SPDX identifiers of a text. It fails for a licence with unknown words, and for one that is
// not permitted.
func (m *module) identify(name string) error {
	text := licensecheck.Scan(m.texts[name])
	base := strings.ToUpper(filepath.Base(name))
	if text.Percent < 75 && (strings.HasPrefix(base, "LICEN") || base == "COPYING") {
		return fmt.Errorf("module %s: only %.0f %% of %s is a known licence", m.path, text.Percent, name)
	}
	for _, match := range text.Match {
		if match.ID == "GooglePatentsFile" { // a grant beside the licence, without an identifier
			continue
		}
		if !slices.Contains(permitted, match.ID) {
			return fmt.Errorf("module %s: %s is of the licence %s, which is not permitted", m.path, name, match.ID)
		}
		m.licenses[match.ID] = true
	}
	return nil
}

// license returns the licences as an SPDX expression.
func (m *module) license() string {
	return strings.Join(slices.Sorted(maps.Keys(m.licenses)), " AND ")
}

// licenseFiles returns the texts of the modules' licences as files below dir, and SOURCES, which says where the
// source code is, in the order of the modules.
func licenseFiles(dir string, modules []*module) []entry {
	var sources strings.Builder
	sources.WriteString("The licences of what consul-ecs is made from are in the directories beside this file.\n" +
		"The source code of each module is at the address in its line; go mod download MODULE@VERSION fetches it.\n\n")
	var files []entry
	for _, m := range modules {
		for name, text := range m.texts {
			path := dir + m.path + "/" + filepath.ToSlash(name)
			files = append(files, entry{path: path, mode: 0o644, data: text})
		}
		fmt.Fprintf(&sources, "%s %s (%s): %s\n", m.path, m.version, m.license(), m.source())
	}
	return append(files, entry{path: dir + "SOURCES", mode: 0o644, data: []byte(sources.String())})
}

// source returns the address of the module's source code.
func (m *module) source() string {
	if m.path == stdlib {
		return "https://go.dev/dl/go" + m.version + ".src.tar.gz"
	}
	if m.sum == "" {
		return "https://" + m.path
	}
	return "https://pkg.go.dev/" + m.path + "@" + m.version
}
