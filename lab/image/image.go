// Package image packs the released program into an OCI image for several architectures, without a
// daemon, a registry or a base: what the program needs beside itself is four small files. What is
// packed twice has the same digest.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Program is a build of starling, for an architecture as Go names it.
type Program struct {
	Arch string
	Path string
	Made string // file that says what it is made of (CycloneDX); "": none
}

const (
	// User is who the program runs as, and Home is that one's: the state is below it.
	User   = 65532 // as in other images without a shell, which policies know
	Home   = "/var/lib/starling"
	Binary = "/usr/local/bin/starling"
	// Name is the image's, before its version.
	Name = "localhost/starling"
)

// settings are what serve does in a container, where nothing else is said.
var settings = []string{
	"PATH=/usr/local/bin", "HOME=" + Home,
	"STARLING_SERVE_DIR=" + Home + "/run",
	"STARLING_SERVE_LISTEN=0.0.0.0:8443",
	"STARLING_SERVE_TLS=true",
	"STARLING_SERVE_ADMIN=0.0.0.0:9090",
	"STARLING_SERVE_LOG=json",
}

// entry is a file of an image, or a folder.
type entry struct {
	name    string
	mode    fs.FileMode
	owner   int
	content []byte
	at      string // in place of content, where it lies
}

// system is what a program finds beside itself.
func system() ([]entry, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file cannot say that it is trusted for some of what it signs
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, wrapped(err)
		}
	}
	dir := func(name string, mode fs.FileMode, owner int) entry {
		return entry{name: name + "/", mode: fs.ModeDir | mode, owner: owner}
	}
	return []entry{
		dir("etc", 0o755, 0),
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", User)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:/none\nnonroot:x:%d:%d:nonroot:%s:/none\n", User, User, Home)},
		dir("etc/ssl", 0o755, 0), dir("etc/ssl/certs", 0o755, 0),
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		dir("etc/starling", 0o755, 0),
		dir("tmp", fs.ModeSticky|0o777, 0),
		dir("var", 0o755, 0), dir("var/lib", 0o755, 0), dir(Home[1:], 0o700, User),
	}, nil
}

// program is what there is of one.
func program(p Program) []entry {
	entries := []entry{
		{name: "usr/", mode: fs.ModeDir | 0o755}, {name: "usr/local/", mode: fs.ModeDir | 0o755}, {name: "usr/local/bin/", mode: fs.ModeDir | 0o755},
		{name: Binary[1:], mode: 0o755, at: p.Path},
	}
	if p.Made != "" {
		entries = append(entries, entry{name: "usr/share/", mode: fs.ModeDir | 0o755}, entry{name: "usr/share/sbom/", mode: fs.ModeDir | 0o755},
			entry{name: "usr/share/sbom/starling.cdx.json", mode: 0o644, at: p.Made})
	}
	return entries
}

// pack writes entries as a tar, with nothing of when and by whom.
func pack(to io.Writer, entries []entry) error {
	w := tar.NewWriter(to)
	for _, e := range entries {
		content := e.content
		if e.at != "" {
			var err error
			if content, err = os.ReadFile(e.at); err != nil {
				return err
			}
		}
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(content)), Uid: e.owner, Gid: e.owner,
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if e.mode.IsDir() {
			h.Typeflag = tar.TypeDir
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return wrapped(err)
		}
		if _, err := w.Write(content); err != nil {
			return wrapped(err)
		}
	}
	return wrapped(w.Close())
}

// layer is entries as a layer of an image.
func layer(entries []entry) (v1.Layer, error) {
	var b bytes.Buffer
	if err := pack(&b, entries); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	return l, wrapped(err)
}

// wrapped says where an error of another's comes from.
func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("the image: %w", err)
	}
	return nil
}

// Index is the image of a version, for each program's architecture.
func Index(version string, programs []Program) (v1.ImageIndex, error) {
	entries, err := system()
	if err != nil {
		return nil, err
	}
	below, err := layer(entries)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		above, err := layer(program(p))
		if err != nil {
			return nil, err
		}
		img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), below, above)
		if err != nil {
			return nil, wrapped(err)
		}
		platform := v1.Platform{OS: "linux", Architecture: p.Arch}
		file, err := img.ConfigFile()
		if err != nil {
			return nil, wrapped(err)
		}
		file = file.DeepCopy()
		file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, v1.Time{Time: time.Unix(0, 0).UTC()}
		file.Config = v1.Config{
			User: fmt.Sprintf("%d:%d", User, User), Env: settings, Entrypoint: []string{Binary}, Cmd: []string{"serve"}, WorkingDir: Home,
			Volumes: map[string]struct{}{Home: {}}, ExposedPorts: map[string]struct{}{"8443/tcp": {}, "9090/tcp": {}},
			Labels: map[string]string{
				"org.opencontainers.image.title": "starling", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.description": "Cross-device federated fine-tuning: a coordinator and its gateways",
			},
		}
		if img, err = mutate.ConfigFile(img, file); err != nil {
			return nil, wrapped(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

// Write packs an index into one file, an OCI image layout as a tar, under the image's name, and returns
// its digest.
func Write(index v1.ImageIndex, version, file string) (digest v1.Hash, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return digest, err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return digest, wrapped(err)
	}
	name := Name + ":" + version
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name})); err != nil {
		return digest, wrapped(err)
	}
	var entries []entry
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		entries = append(entries, entry{name: filepath.ToSlash(rel), mode: 0o644, at: p})
		return err
	})
	if err != nil {
		return digest, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out, err := os.Create(file)
	if err != nil {
		return digest, err
	}
	if err := errors.Join(pack(out, entries), out.Close()); err != nil {
		return digest, fmt.Errorf("%s: %w", file, err)
	}
	digest, err = index.Digest()
	return digest, wrapped(err)
}
