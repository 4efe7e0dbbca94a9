package release

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// tags are the platforms as wheels name them (PyPA's "Platform compatibility tags"). A program built without cgo needs
// no C library, so that the oldest manylinux and musllinux hold; Go 1.26 needs macOS 12.
var tags = map[string]string{
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"linux/amd64":   "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

// described is what git describe prints: a tag, and the commits since it.
var described = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// pythonVersion is a version as PEP 440 has it; one that is no release's is a local version of 0.
func pythonVersion(version string) string {
	if m := described.FindStringSubmatch(version); m != nil {
		var local []string
		number := m[1]
		if m[2] != "" {
			number += ".post" + m[2]
			local = append(local, m[3])
		}
		if m[4] != "" {
			local = append(local, "dirty")
		}
		if len(local) > 0 {
			number += "+" + strings.Join(local, ".")
		}
		return number
	}
	local := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(version), "."), ".")
	return "0+" + local
}

// wheel is the Python package with the program of a build as its script: its file's name and what it holds.
func (r *Release) wheel(b Build) (string, []file, error) {
	stem := "starling_fl-" + pythonVersion(b.Version)
	script := stem + ".data/scripts/" + b.Program.Name
	if b.OS == "windows" {
		script += ".exe"
	}
	from := filepath.Join(r.Source, "deploy", "python")
	modules, err := os.ReadDir(filepath.Join(from, "starling"))
	if err != nil {
		return "", nil, fmt.Errorf("packing: %w", err)
	}
	wanted := []source{{script, b.Path}, {stem + ".dist-info/licenses/LICENSE", filepath.Join(r.Source, "LICENSE")}}
	for _, m := range modules {
		if m.Type().IsRegular() { // no __pycache__
			wanted = append(wanted, source{"starling/" + m.Name(), filepath.Join(from, "starling", m.Name())})
		}
	}
	files, err := load(wanted)
	if err != nil {
		return "", nil, err
	}
	readme, err := os.ReadFile(filepath.Join(from, "README.md"))
	if err != nil {
		return "", nil, fmt.Errorf("packing: %w", err)
	}
	about := []string{
		"Metadata-Version: 2.4", "Name: starling-fl", "Version: " + pythonVersion(b.Version), "Summary: " + b.Program.Summary,
		"Project-URL: Homepage, " + Home, "License-Expression: " + License, "License-File: LICENSE", "Requires-Python: >=3.9",
		"Description-Content-Type: text/markdown", "", string(readme),
	}
	kind := []string{"Wheel-Version: 1.0", "Generator: starling", "Root-Is-Purelib: false"}
	// A compressed set of tags stands for each of them.
	for tag := range strings.SplitSeq(tags[b.OS+"/"+b.Arch], ".") {
		kind = append(kind, "Tag: py3-none-"+tag)
	}
	files = append(files,
		file{stem + ".dist-info/METADATA", 0o644, []byte(strings.Join(about, "\n"))},
		file{stem + ".dist-info/WHEEL", 0o644, []byte(strings.Join(kind, "\n") + "\n")})
	var record strings.Builder
	for _, f := range files {
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, digest(f.body), len(f.body))
	}
	name := stem + ".dist-info/RECORD"
	fmt.Fprintf(&record, "%s,,\n", name)
	files = append(files, file{name, 0o644, []byte(record.String())})
	return path.Join("python", stem+"-py3-none-"+tags[b.OS+"/"+b.Arch]+".whl"), files, nil
}

// digest is a hash as RECORD has it.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
