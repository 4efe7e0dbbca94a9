package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/image"
)

// TestImage: what is packed twice is one image, for each architecture it has a program, and the one of
// this machine runs as nobody in particular, in a root that it cannot write, as a coordinator with its
// devices until their rounds are over.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	binary, other := build(t), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("a program of another architecture"), 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := map[bool]string{true: "arm64", false: "amd64"}[runtime.GOARCH == "amd64"]
	pack := func(name string) (v1.Hash, string) {
		t.Helper()
		index, err := image.Index("1.2.3", []image.Program{{Arch: runtime.GOARCH, Path: binary, Made: other}, {Arch: elsewhere, Path: other}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		digest, err := image.Write(index, "1.2.3", file)
		if err != nil {
			t.Fatal(err)
		}
		return digest, file
	}
	first, file := pack("first.tar")
	if err := os.Chtimes(other, time.Now(), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	second, again := pack("second.tar")
	if first != second || hashOf(t, file) != hashOf(t, again) {
		t.Errorf("packed twice it is %s and %s", first, second)
	}
	img := unpacked(t, file, filepath.Join(dir, "layout"), first)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	extract(t, img, root)
	runContained(t, root, config.Config)
}

func hashOf(t *testing.T, file string) v1.Hash {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, _, err := v1.SHA256(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// unpacked is the image for this machine in a file, every digest in which is held.
func unpacked(t *testing.T, file, dir string, want v1.Hash) v1.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	untar(t, f, dir)
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(all); err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(want)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool {
		return d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
	})
	img, err := index.Image(manifest.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// extract lays an image's files out, as who it says where this process may.
func extract(t *testing.T, img v1.Image, root string) {
	t.Helper()
	content := mutate.Extract(img)
	defer content.Close()
	untar(t, content, root)
}

func untar(t *testing.T, from io.Reader, root string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(root, h.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
		} else {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(at, h.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(at, h.Uid, h.Gid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// runContained runs serve and devices in the root, with nothing of this machine but its network.
func runContained(t *testing.T, root string, c v1.Config) {
	const devices = 3
	home := filepath.Join(root, c.WorkingDir)
	if c.User != "65532:65532" || len(c.Entrypoint) != 1 {
		t.Fatalf("it runs %q as %q", c.Entrypoint, c.User)
	}
	within := func(env []string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(watchdog.Context(t), c.Entrypoint[0], args...)
		cmd.Dir, cmd.Env = c.WorkingDir, append(slices.Clone(c.Env), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: image.User, Gid: image.User}
			return cmd
		}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: image.User, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: image.User, HostID: os.Getgid(), Size: 1}}
		return cmd
	}
	if out, err := within(nil, "lab", "invoices", "--out", "/tmp/data", "--clients", fmt.Sprint(devices)).CombinedOutput(); err != nil {
		t.Fatalf("invoices: %v\n%s", err, out)
	}
	if out, err := within(nil, "lab", "invoices", "--out", "/etc/data", "--clients", "1").CombinedOutput(); err == nil && os.Geteuid() == 0 {
		t.Errorf("it writes its root: %s", out)
	}
	job := filepath.Join(root, "etc/starling/job.yaml")
	if err := os.WriteFile(job, fmt.Appendf(nil, `
name: contained
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: 1
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, devices), 0o644); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	server := begin(t, within([]string{"STARLING_SERVE_JOB=/etc/starling/job.yaml", "STARLING_SERVE_LISTEN=" + address, "STARLING_SERVE_ADMIN=127.0.0.1:0"}, c.Cmd...))
	token := server.await(t, `join with: starling join (\S+)`)[1]
	var joined []*process
	for i := range devices {
		name := fmt.Sprint("/tmp/", i)
		joined = append(joined, begin(t, within(nil, "join", "--trust-local", token, "--data", fmt.Sprintf("/tmp/data/train-%d.jsonl", i), "--identity", name+".pem", "--cache", name, "--accounts", name)))
	}
	server.await(t, `"msg":"committed"`)
	for _, p := range append(joined, server) {
		if err := p.end(); err != nil {
			t.Errorf("%v\n%s", err, p.said())
		}
	}
	if _, err := os.Stat(filepath.Join(home, "run/checkpoint")); err != nil {
		t.Error(err)
	}
}
