package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

// made makes a release of stand-in programs for the platforms given.
func made(t *testing.T, version string, platforms ...string) string {
	t.Helper()
	folder, manual := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range Programs {
		for _, platform := range platforms {
			put(filepath.Join(folder, p.Name+"_"+version+"_"+platform), p.Name+" for "+platform)
		}
	}
	put(filepath.Join(manual, "man", "starling.1"), ".TH starling")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		put(filepath.Join(manual, "starling."+shell), shell)
	}
	r, err := Open(version, folder, "../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Make(manual); err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Archives hold the program, executable, and listings name them with the hashes that they have.
func TestMake(t *testing.T) {
	folder := made(t, "0.1.0", "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64.exe", "windows_arm64.exe")
	packed := read(t, folder, "starling_0.1.0_linux_arm64.tar.gz")
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %o", head.Name, head.Mode))
		if b, err := io.ReadAll(r); head.Name == "starling" && (err != nil || string(b) != "starling for linux_arm64") {
			t.Errorf("the program is %q, %v", b, err)
		}
	}
	want := "starling 755, LICENSE 644, CHANGELOG.md 644, man/starling.1 644, completions/starling.bash 644, completions/starling.zsh 644, completions/starling.fish 644"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("the archive holds %s, want %s", got, want)
	}
	windows := read(t, folder, "starling-edge_0.1.0_windows_arm64.zip")
	if z, err := zip.NewReader(strings.NewReader(windows), int64(len(windows))); err != nil || z.File[0].Name != "starling-edge.exe" {
		t.Errorf("%v", err)
	}
	formula, manifest := read(t, folder, "homebrew", "starling.rb"), read(t, folder, "winget", "Starling.Edge.installer.yaml")
	for text, has := range map[string]string{
		formula:  fmt.Sprintf("    on_arm do\n      url \"%s/releases/download/v0.1.0/starling_0.1.0_linux_arm64.tar.gz\"\n      sha256 \"%x\"\n    end\n", Home, sha256.Sum256([]byte(packed))),
		manifest: fmt.Sprintf("- Architecture: arm64\n  InstallerUrl: %s/releases/download/v0.1.0/starling-edge_0.1.0_windows_arm64.zip\n  InstallerSha256: %X\n", Home, sha256.Sum256([]byte(windows))),
		read(t, folder, "nfpm", "starling.service"):     "ExecStart=/usr/bin/starling serve\n",
		read(t, folder, "nfpm", "starling_amd64.yaml"):  "dst: /usr/lib/systemd/system/starling.service\n",
		read(t, folder, "homebrew", "starling-edge.rb"): "class StarlingEdge < Formula\n",
		read(t, folder, "NOTES.md"):                     "# Starling 0.1.0\n",
	} {
		if !strings.Contains(text, has) {
			t.Errorf("%s\nlacks\n%s", text, has)
		}
	}
	for _, name := range []string{"starling_0.1.0_linux_arm64.tar.gz", "starling-edge_0.1.0_windows_arm64.zip", "homebrew/starling.rb", "python/starling_fl-0.1.0-py3-none-win_arm64.whl"} {
		again := made(t, "0.1.0", "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64.exe", "windows_arm64.exe")
		if !bytes.Equal([]byte(read(t, folder, name)), []byte(read(t, again, name))) {
			t.Errorf("%s differs from build to build", name)
		}
	}
}

// Settings and manifests are YAML.
func TestYAML(t *testing.T) {
	folder := made(t, "0.1.0", "linux_amd64", "windows_amd64.exe")
	found := 0
	for _, of := range []string{"nfpm/*.yaml", "winget/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(folder, of))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found++
			var values map[string]any
			if err := strict.Read(strings.NewReader(read(t, path)), &values); err != nil || len(values) < 4 {
				t.Errorf("%s: %v, %v", path, values, err)
			}
		}
	}
	if found != 8 {
		t.Errorf("%d files, want 8", found)
	}
}

// A wheel records each of its files, holds the program as a script that may be run, and names its version as Python does.
func TestWheel(t *testing.T) {
	folder := made(t, "v0.1.0-3-gabcdef0-dirty", "linux_amd64")
	name := "starling_fl-0.1.0.post3+gabcdef0.dirty-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl"
	packed := read(t, folder, "python", name)
	z, err := zip.NewReader(strings.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	held, modes := map[string]string{}, map[string]fs.FileMode{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		held[f.Name], modes[f.Name] = string(b), f.Mode()
	}
	stem := "starling_fl-0.1.0.post3+gabcdef0.dirty"
	script := stem + ".data/scripts/starling"
	if held[script] != "starling for linux_amd64" || modes[script] != 0o755 {
		t.Errorf("the script is %q, %o", held[script], modes[script])
	}
	record := strings.Split(strings.TrimSuffix(held[stem+".dist-info/RECORD"], "\n"), "\n")
	if len(record) != len(held) {
		t.Errorf("%d files recorded of %d", len(record), len(held))
	}
	for _, line := range record {
		name, rest, _ := strings.Cut(line, ",")
		sum := sha256.Sum256([]byte(held[name]))
		if want := fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(sum[:]), len(held[name])); rest != want && !strings.HasSuffix(name, "/RECORD") {
			t.Errorf("%s: recorded %s, want %s", name, rest, want)
		}
	}
	for _, name := range []string{"starling/__init__.py", "starling/_command.py", "starling/_simulate.py", "starling/py.typed"} {
		if _, ok := held[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	if about := held[stem+".dist-info/METADATA"]; !strings.Contains(about, "\nVersion: 0.1.0.post3+gabcdef0.dirty\n") || !strings.Contains(about, "\n\n# Starling for Python") {
		t.Error(about)
	}
	for version, want := range map[string]string{"v1.2.0": "1.2.0", "v1.2.0-dirty": "1.2.0+dirty", "777c6b15-dirty": "0+777c6b15.dirty", "devel": "0+devel"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// What was not built is not listed.
func TestFewer(t *testing.T) {
	folder := made(t, "0.1.0", "linux_amd64")
	for _, name := range []string{"homebrew", "winget"} {
		if _, err := os.Stat(filepath.Join(folder, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("0.1.0", t.TempDir(), "../.."); err == nil {
		t.Error("an empty folder")
	}
}
