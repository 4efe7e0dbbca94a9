package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// A job that is started again when its budget is spent says so, and what came of it,
// though no device is there.
func TestServeOfASpentBudgetWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "run")
	text := "name: spent\nlabels: [a, b]\nrounds: 3\ncohort: {population: 4}\nshard: {size: 4, floor: 2, breach_bits: 0, corrupt: 0}\n" +
		"privacy: {epsilon: 100000}\nserver: {optimizer: fedavg}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	spend(t, path, state)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"serve", "--job", path, "--dir", state, "--listen", "127.0.0.1:0", "--linger", "10ms", "--json"}, strings.NewReader(""), &out, &errs)
	if want := "the budget is spent after 1 of 3 rounds: stopped before round 2"; code != 1 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "adapter.start") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	var r struct {
		Rounds     int
		Checkpoint string
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Rounds != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if c, err := model.ReadCheckpoint(r.Checkpoint); err != nil || c.Version != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// spend gives a job a folder in which one round cost more than its budget.
func spend(t *testing.T, path, dir string) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	j, err := job.Load(path)
	ok(err)
	b, err := bases.ForJob(j)
	ok(err)
	c, err := coordinator.New(coordinator.Config{Job: j, Dir: dir, Base: b, Hosts: []string{}})
	ok(err)
	ok(c.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, store.FileName))
	ok(err)
	var digest string
	ok(db.QueryRow(`SELECT value FROM meta WHERE key = 'job'`).Scan(&digest))
	ok(db.Close())
	sum, err := hex.DecodeString(digest)
	ok(err)
	s, err := store.Open(dir, store.Options{Task: j.Name, Job: [32]byte(sum)})
	ok(err)
	cert := dp.Certificate{Method: dp.MethodPoisson, Generator: "test", Rate: 1, Population: 4, Nonce: [32]byte{9}}
	id, err := s.BeginRound(store.Round{Rank: 1, Certificate: cert})
	ok(err)
	cost, err := dp.ReleaseSpec{Round: id, SamplingRate: 1, B2: 175_000, NoiseMultiplier: 0.001, NoiseScale: 1, Certificate: cert.Hash()}.Event(8192)
	ok(err)
	cost.Kind = dp.KindRelease
	layout, err := outcome.Layout(j.ForBase(b.Config), b)
	ok(err)
	adapter, err := model.EncodeAdapter(model.NewAdapter(layout, 1))
	ok(err)
	ok(s.PersistIntent(cost))
	_, err = s.Commit(cost, store.Note{Guarantees: dp.Guarantees{Delivered: &dp.Guarantee{Epsilon: 1e6}}}, store.Checkpoint{Version: 1, Round: id, Adapter: adapter, ClipNorm: 1})
	ok(err)
	ok(s.Close())
}
