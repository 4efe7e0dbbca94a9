// Package release turns the programs that deploy/release.sh has built into what people install: an archive for each
// platform, a Python wheel, a Homebrew formula, manifests for winget, settings for Debian's and RPM's packer, and the notes of the
// version. The same programs make the same bytes.
package release

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is said of the programs wherever they are listed.
const (
	Home    = "https://github.com/starling-fl/starling"
	License = "Apache-2.0"
)

// Program is one of the two that are released.
type Program struct {
	Name    string // of the file, and of the package
	Summary string
	Unit    string // file of a systemd unit that its packages hold, below the repository; "" for none
}

// Programs are what is released.
var Programs = []Program{
	{Name: "starling", Summary: "Private federated fine-tuning: coordinator, simulation and edge", Unit: "deploy/systemd/starling.service"},
	{Name: "starling-edge", Summary: "Take part in federated fine-tuning; your data stays on this machine"},
}

// Build is one program for one platform.
type Build struct {
	Program Program
	Version string
	OS      string // as Go names it
	Arch    string
	Path    string
}

// archive is the name of its archive.
func (b Build) archive() string {
	suffix := ".tar.gz"
	if b.OS == "windows" {
		suffix = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", b.Program.Name, b.Version, b.OS, b.Arch, suffix)
}

// Release is a version in a folder of programs.
type Release struct {
	Version string
	Folder  string // of the programs, and of what is made
	Source  string // the repository
	manual  string // as Make is told
	Builds  []Build
}

// Open finds the programs of a version in a folder.
func Open(version, folder, source string) (*Release, error) {
	r := &Release{Version: version, Folder: folder, Source: source}
	for _, p := range Programs {
		for _, platform := range []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"} {
			system, arch, _ := strings.Cut(platform, "/")
			path := filepath.Join(folder, fmt.Sprintf("%s_%s_%s_%s", p.Name, version, system, arch))
			if system == "windows" {
				path += ".exe"
			}
			if _, err := os.Stat(path); err == nil {
				r.Builds = append(r.Builds, Build{p, version, system, arch, path})
			}
		}
	}
	if len(r.Builds) == 0 {
		return nil, fmt.Errorf("packing: %s has no starling_%s_SYSTEM_ARCHITECTURE", folder, version)
	}
	return r, nil
}

// Make writes archives, then what names them with their hashes. The manual is the folder of pages and completions that
// 'make man' writes.
func (r *Release) Make(manual string) error {
	r.manual = manual
	hashes := map[string]string{} // of archives
	for _, b := range r.Builds {
		content, err := r.content(b)
		if err != nil {
			return err
		}
		var packed []byte
		if b.OS == "windows" {
			packed, err = zipped(content)
		} else {
			packed, err = tarred(content)
		}
		if err != nil {
			return err
		}
		hashes[b.archive()] = fmt.Sprintf("%x", sha256.Sum256(packed))
		if err := r.write(b.archive(), packed); err != nil {
			return err
		}
	}
	for _, p := range Programs {
		var builds []Build
		for _, b := range r.Builds {
			if b.Program == p {
				builds = append(builds, b)
			}
		}
		for name, text := range r.listings(p, builds, hashes) {
			if err := r.write(name, []byte(text)); err != nil {
				return err
			}
		}
	}
	for _, b := range r.Builds {
		if b.OS == "linux" && b.Program.Unit != "" {
			if err := r.unit(b.Program); err != nil {
				return err
			}
		}
	}
	if err := r.Wheels(); err != nil {
		return err
	}
	notes, err := r.notes()
	if err != nil {
		return err
	}
	return r.write("NOTES.md", notes)
}

// Wheels writes a Python package for each platform, in the folder python.
func (r *Release) Wheels() error {
	for _, b := range r.Builds {
		if b.Program.Name != "starling" { // the one that Python calls
			continue
		}
		name, content, err := r.wheel(b)
		if err != nil {
			return err
		}
		packed, err := zipped(content)
		if err != nil {
			return err
		}
		if err := r.write(name, packed); err != nil {
			return err
		}
	}
	return nil
}

func (r *Release) write(name string, b []byte) error {
	path := filepath.Join(r.Folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil { //nolint:gosec // to be published
		return fmt.Errorf("packing: %w", err)
	}
	return nil
}

// unit writes the unit of a package, whose program is where packages have theirs.
func (r *Release) unit(p Program) error {
	b, err := os.ReadFile(filepath.Join(r.Source, p.Unit))
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return r.write("nfpm/"+p.Name+".service", bytes.ReplaceAll(b, []byte("/usr/local/bin/"), []byte("/usr/bin/")))
}

// file is a file of an archive.
type file struct {
	name string
	mode int64
	body []byte
}

// source is a file that goes into an archive under a name.
type source struct{ name, path string }

// content is the program, its license, what changed, and where manuals help their pages and completions.
func (r *Release) content(b Build) ([]file, error) {
	name := b.Program.Name
	if b.OS == "windows" {
		name += ".exe"
	}
	wanted := []source{
		{name, b.Path},
		{"LICENSE", filepath.Join(r.Source, "LICENSE")},
		{"CHANGELOG.md", filepath.Join(r.Source, "CHANGELOG.md")},
	}
	if b.OS != "windows" && b.Program.Name == "starling" {
		pages, err := filepath.Glob(filepath.Join(r.manual, "man", "*.1"))
		if err != nil {
			return nil, fmt.Errorf("packing: %w", err)
		}
		slices.Sort(pages)
		for _, page := range pages {
			wanted = append(wanted, source{"man/" + filepath.Base(page), page})
		}
		for _, shell := range []string{"bash", "zsh", "fish"} {
			wanted = append(wanted, source{"completions/starling." + shell, filepath.Join(r.manual, "starling."+shell)})
		}
	}
	return load(wanted)
}

// load reads what goes into an archive; the first of it is the program.
func load(wanted []source) ([]file, error) {
	var files []file
	for i, w := range wanted {
		body, err := os.ReadFile(w.path)
		if err != nil {
			return nil, fmt.Errorf("packing: %w", err)
		}
		mode := int64(0o644)
		if i == 0 {
			mode = 0o755
		}
		files = append(files, file{w.name, mode, body})
	}
	return files, nil
}

// notes is the section of CHANGELOG.md about the version, or about what is unreleased where it has none.
func (r *Release) notes() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(r.Source, "CHANGELOG.md"))
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	for _, title := range []string{"\n## " + strings.TrimPrefix(r.Version, "v") + "\n", "\n## Unreleased\n"} {
		if _, section, ok := bytes.Cut(b, []byte(title)); ok {
			section, _, _ = bytes.Cut(section, []byte("\n## "))
			return append([]byte("# Starling "+r.Version+"\n"), bytes.TrimRight(section, "\n")...), nil
		}
	}
	return nil, errors.New("packing: CHANGELOG.md has no section of the version, and none that is Unreleased")
}
