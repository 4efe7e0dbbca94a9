package release

import (
	"fmt"
	"strconv"
	"strings"
)

// listings are files, by name, by which others' tools find and install a program. Each is left out whose platforms were
// not built.
func (r *Release) listings(p Program, builds []Build, hashes map[string]string) map[string]string {
	out := map[string]string{}
	if text := r.formula(p, builds, hashes); text != "" {
		out["homebrew/"+p.Name+".rb"] = text
	}
	for name, text := range r.winget(p, builds, hashes) {
		out["winget/"+name] = text
	}
	for _, b := range builds {
		if b.OS == "linux" {
			out[fmt.Sprintf("nfpm/%s_%s.yaml", p.Name, b.Arch)] = r.packer(b)
		}
	}
	return out
}

func (r *Release) url(b Build) string {
	return Home + "/releases/download/v" + r.Version + "/" + b.archive()
}

// formula is Homebrew's, for macOS and Linux.
func (r *Release) formula(p Program, builds []Build, hashes map[string]string) string {
	systems := []struct{ goos, brew string }{{"darwin", "macos"}, {"linux", "linux"}}
	var s strings.Builder
	class := strings.ReplaceAll(strings.ToUpper(p.Name[:1])+p.Name[1:], "-edge", "Edge")
	fmt.Fprintf(&s, "class %s < Formula\n  desc %q\n  homepage %q\n  version %q\n  license %q\n", class, p.Summary, Home, r.Version, License)
	for _, system := range systems {
		var blocks string
		for _, b := range builds {
			if b.OS == system.goos {
				cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[b.Arch]
				blocks += fmt.Sprintf("    on_%s do\n      url %q\n      sha256 %q\n    end\n", cpu, r.url(b), hashes[b.archive()])
			}
		}
		if blocks == "" {
			return "" // Homebrew wants both systems
		}
		fmt.Fprintf(&s, "\n  on_%s do\n%s  end\n", system.brew, blocks)
	}
	fmt.Fprintf(&s, "\n  def install\n    bin.install %q\n", p.Name)
	if p.Name == "starling" {
		s.WriteString("    man1.install Dir[\"man/*.1\"]\n    bash_completion.install \"completions/starling.bash\" => \"starling\"\n" +
			"    zsh_completion.install \"completions/starling.zsh\" => \"_starling\"\n    fish_completion.install \"completions/starling.fish\"\n")
	}
	fmt.Fprintf(&s, "  end\n\n  test do\n    assert_match version.to_s, shell_output(\"#{bin}/%s version\")\n  end\nend\n", p.Name)
	return s.String()
}

// winget are the three manifests that winget wants of a portable program.
func (r *Release) winget(p Program, builds []Build, hashes map[string]string) map[string]string {
	var installers strings.Builder
	for _, b := range builds {
		if b.OS != "windows" {
			continue
		}
		arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[b.Arch]
		fmt.Fprintf(&installers, "- Architecture: %s\n  InstallerUrl: %s\n  InstallerSha256: %s\n", arch, r.url(b), strings.ToUpper(hashes[b.archive()]))
	}
	if installers.Len() == 0 {
		return nil
	}
	id := "Starling." + map[string]string{"starling": "Starling", "starling-edge": "Edge"}[p.Name]
	head := func(kind string) string {
		return fmt.Sprintf("# yaml-language-server: $schema=https://aka.ms/winget-manifest.%s.1.6.0.schema.json\nPackageIdentifier: %s\nPackageVersion: %s\n", kind, id, r.Version)
	}
	tail := func(kind string) string { return "ManifestType: " + kind + "\nManifestVersion: 1.6.0\n" }
	return map[string]string{
		id + ".yaml": head("version") + "DefaultLocale: en-US\n" + tail("version"),
		id + ".locale.en-US.yaml": head("defaultLocale") + "PackageLocale: en-US\nPublisher: Starling\nPackageName: " + p.Name +
			"\nLicense: " + License + "\nShortDescription: " + strconv.Quote(p.Summary) + "\nPackageUrl: " + Home + "\n" + tail("defaultLocale"),
		id + ".installer.yaml": head("installer") + "InstallerType: zip\nNestedInstallerType: portable\nNestedInstallerFiles:\n- RelativeFilePath: " +
			p.Name + ".exe\n  PortableCommandAlias: " + p.Name + "\nInstallers:\n" + installers.String() + tail("installer"),
	}
}

// packer is nfpm's settings for a .deb and a .rpm. Paths are from the repository's folder.
func (r *Release) packer(b Build) string {
	var s strings.Builder
	fmt.Fprintf(&s, "name: %s\narch: %s\nplatform: linux\nversion: %q\nsection: net\npriority: optional\nmtime: %q\n", b.Program.Name, b.Arch, r.Version, epoch.Format("2006-01-02T15:04:05Z"))
	fmt.Fprintf(&s, "maintainer: Starling <maintainers@starling-fl.invalid>\ndescription: %q\nhomepage: %s\nlicense: %s\nrpm: {buildhost: localhost}\ncontents:\n", b.Program.Summary, Home, License)
	put := func(from, to, more string) {
		fmt.Fprintf(&s, "- src: %s\n  dst: %s\n  file_info: {mtime: %s%s}\n", from, to, epoch.Format("2006-01-02T15:04:05Z"), more)
	}
	put(b.Path, "/usr/bin/"+b.Program.Name, ", mode: 0o755")
	put(r.Source+"/LICENSE", "/usr/share/doc/"+b.Program.Name+"/copyright", ", mode: 0o644")
	if b.Program.Unit != "" {
		put(r.Folder+"/nfpm/"+b.Program.Name+".service", "/usr/lib/systemd/system/"+b.Program.Name+".service", ", mode: 0o644")
	}
	if b.Program.Name == "starling" {
		put(r.manual+"/man/*.1", "/usr/share/man/man1/", ", mode: 0o644")
		put(r.manual+"/starling.bash", "/usr/share/bash-completion/completions/starling", ", mode: 0o644")
		put(r.manual+"/starling.zsh", "/usr/share/zsh/vendor-completions/_starling", ", mode: 0o644")
		put(r.manual+"/starling.fish", "/usr/share/fish/vendor_completions.d/starling.fish", ", mode: 0o644")
	}
	return s.String()
}
