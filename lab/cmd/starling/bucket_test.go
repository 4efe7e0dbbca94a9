//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/loadtest"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// TestOwnersWithoutACommonFolder: two owners share a database and a bucket, and nothing else. Base
// and adapter.start lie where the first one is; when that is killed, they are gone with it. The second
// one has them from the bucket: the job ends, with releases over the same base.
func TestOwnersWithoutACommonFolder(t *testing.T) {
	const devices, rounds, key = 12, 4, "AKIASTARLINGTEST"
	s := newService(t, devices, rounds)
	memory := s3mem.New()
	if err := memory.CreateBucket("models"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(memory).Server()
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	defer bucket.Close()
	const secret = "a secret that no log has"
	t.Setenv("AWS_ACCESS_KEY_ID", key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)

	place, sum := s.ofTheFirst()
	b, url := balance(t)
	owner := func(i int) *process {
		return start(t, s.binary, "serve", "--dir", s.folder(i), "--store", s.database.URL(), "--listen", b.owners[i],
			"--blobs", "s3://models/fleet?endpoint="+bucket.URL, "--url", url, "--log", "text")
	}
	first := owner(0)
	token := s.submit(first)
	second := owner(1)
	second.await(t, "standing by")
	_, ended := play(t, loadtest.Config{Devices: devices}, token)
	s.more("the first round")
	first.await(t, `msg="the release is in the bucket"`)

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	second.await(t, "base and start are taken from the bucket")
	s.more("a round of the second owner")
	served, err := http.Get(fmt.Sprintf("%s/jobs/load/blob/%x", url, sum))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := io.ReadAll(served.Body)
	if err != nil || sha256.Sum256(blob) != sum {
		t.Errorf("the second owner serves a base of %d bytes with another hash: %s, %v", len(blob), served.Status, err)
	}
	second.await(t, `msg="job over".*state=finished`)
	watchdog.Wait(t, "the devices' end", ended)
	versions := settled(t, s.binary, s.folder(1), s.charged(), rounds, 1)

	released, err := model.ReadCheckpoint(filepath.Join(s.folder(1), "jobs", "load", "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	if released.Version != versions || released.BaseSHA256 != fmt.Sprintf("%x", sum) {
		t.Errorf("released is version %d over the base %s", released.Version, released.BaseSHA256)
	}
	weights, err := model.EncodeAdapter(released.Adapter)
	if err != nil {
		t.Fatal(err)
	}
	stored := func(version int) ([]byte, error) {
		file, err := memory.GetObject("models", fmt.Sprintf("fleet/jobs/load/checkpoint/%06d/%s", version, model.AdapterFile), nil)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(file.Contents)
	}
	watchdog.Wait(t, "the last release in the bucket", func() {
		for there, err := stored(versions); err != nil || !bytes.Equal(there, weights); there, err = stored(versions) {
			if watchdog.Context(t).Err() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	for version := 1; version < versions; version++ { // one that the next had overtaken is not stored
		if there, err := stored(version); err == nil && bytes.Equal(there, weights) {
			t.Errorf("version %d in the bucket is the last", version)
		}
	}
	if all := first.said() + second.said(); strings.Contains(all, secret) || strings.Contains(all, key) {
		t.Error("credentials are in the log")
	}
}

// ofTheFirst writes a base and an adapter over it, and has the job begin with them.
func (s *service) ofTheFirst() (place string, sum [32]byte) {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	place = filepath.Join(s.folder(0), "public")
	own, err := base.Default()
	must(err)
	must(model.Release{Base: own}.Write(filepath.Join(place, "base")))
	b, err := model.LoadBaseDir(filepath.Join(place, "base"))
	must(err)
	sum, err = b.SHA256()
	must(err)
	labels := []string{"a", "b"}
	layout, err := model.NewLayout(b.Config, model.Method{RMax: 1, Alpha: 1}, len(labels))
	must(err)
	must(model.WriteCheckpoint(filepath.Join(place, "start"), &model.Checkpoint{
		CheckpointInfo: model.CheckpointInfo{Seq: 16, Labels: labels}, Base: b, Adapter: model.NewAdapter(layout, 7)}))
	text, err := os.ReadFile(s.file)
	must(err)
	job := "base: base\n" + strings.Replace(string(text), "adapter: {", "adapter: {start: start, ", 1)
	must(os.WriteFile(s.file, []byte(job), 0o600))
	return place, sum
}
