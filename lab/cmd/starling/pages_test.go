package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/data/tokenizer/unigram"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/model"
)

// looker writes the folder of a small untrained base that answers questions and looks at pages, by an encoder or as patches.
func looker(t *testing.T, patches bool) string {
	t.Helper()
	tok, err := unigram.Train(func(yield func(string) bool) { yield("question: context: who total invoice date 0123456789") }, 80,
		[]string{"<pad>", "</s>", "<unk>"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tokenizer.Parse(tok)
	if err != nil {
		t.Fatal(err)
	}
	page := model.NewViT(16, 1, dataset.PageSideDrawn, 56, 3)
	c := model.Config{ModelType: "t5", VocabSize: parsed.VocabSize(), HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2,
		IntermediateSize: 16, LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 8, MaxDistance: 16, End: 1,
			Scaled: true, Boxes: 1001, LinearBoxes: patches}}
	if patches {
		c.T5.Patched.ViT = page.ViT
	} else {
		page.ViT.BEiT = model.BEiT{NoKeyBias: true, Scaled: true, NoNorm: true}
		c.T5.Visual = model.Visual{HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 16, LayerNormEps: 1e-12, HiddenAct: "gelu", ViT: page.ViT}
	}
	b, err := model.RandomBase(c, 3, tok)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A released model that looks at pages and was trained on few of them for long is attacked by its providers' other documents: it
// names members whose names were removed from words and blurred in pictures, and no others, and membership shows.
func TestAuditOfPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := func(into any, args ...string) {
		t.Helper()
		code, out, stderr := runCLI(t, append([]string{"--json"}, args...)...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", args[0], code, stderr)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, out)
		}
	}
	var made struct{ Files []string }
	for _, split := range []string{"train", "red"} {
		do(&made, "lab", "invoices", "--questions", "--pages", "--asked", "sender=1", "--split", split, "--clients", "1", "--per-client", "72", "--providers", "12", "--out", dir)
	}
	base := filepath.Join(dir, "base")
	do(&made, "pretrain", "--architecture", "t5", "--generated", "--patches", "--layers", "1", "--steps", "4", "--batch", "4", "--vocab", "600", "--out", base)
	var run struct{ Checkpoint string }
	args := []string{"simulate", "--base", base, "--data", filepath.Join(dir, "train-0.jsonl"), "--test", filepath.Join(dir, "red-0.jsonl"),
		"--population", "2", "--cohort", "1", "--every", "0", "--validation", "4", "--rounds", "1", "--out", filepath.Join(dir, "run")}
	for _, s := range []string{"cohort.sampling=fixed", "shard.corrupt=0", "privacy.none=true", "task=answer", "adapter.method=full", "adapter.sequence=48",
		"adapter.answer=12", "training.steps=160", "training.batch=8", "training.learning_rate=0.005", "privacy.clip_norm=100"} {
		args = append(args, "--set", s)
	}
	do(&run, args...)
	attacked := []string{"--checkpoint", run.Checkpoint, "--data", filepath.Join(dir, "red-0.jsonl"), "--in", filepath.Join(dir, "members.json")}
	var memory struct {
		Blurred bool                                          `json:"pictures_blurred"`
		Patched bool                                          `json:"pictures_as_patches"`
		Removed struct{ Model, Base memorization.Comparison } `json:"answers_removed"`
	}
	do(&memory, append([]string{"audit", "memorization"}, attacked...)...)
	m := memory.Removed.Model
	if !memory.Blurred || !memory.Patched || m.Members.Questions != 36 || m.Others.Questions != 36 || m.Members.ANLS < m.Others.ANLS+0.2 {
		t.Errorf("%+v", memory)
	}
	var who membership.Result
	do(&who, append([]string{"audit", "membership", "--questions", "0"}, attacked...)...)
	areas := map[string]float64{}
	for _, r := range who.Sets[0].Rows {
		areas[r.Attack] = r.Figures.AUC
	}
	if !who.Distinguished || who.Suspect || areas["loss"] < 0.7 || areas["AZK"] < 0.7 {
		t.Errorf("told %v, suspect %v, areas under the curves %v", who.Distinguished, who.Suspect, areas)
	}
}

// Documents with pages all the way: written, served, joined over sockets, released, scored, answered, exported for
// transformers and imported again; without a page they are refused by the key's name.
func TestServePages(t *testing.T) {
	t.Run("encoder", func(t *testing.T) { servePages(t, looker(t, false), "visual_emb_matcher") })
	t.Run("patches", func(t *testing.T) { servePages(t, looker(t, true), "patch_embed.proj, spatial_emb_matcher") })
}

func servePages(t *testing.T, base, also string) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t)
	const devices = 3
	job := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`
name: pages
task: answer
base: %q
rounds: 2
adapter: {rank_min: 1, rank_max: 2, sequence: 40, answer: 6, also: [%s]}
training: {steps: 2, batch: 4}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, base, also, devices)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	for split, clients := range map[string]int{"train": devices, "validation": 1, "test": 1} {
		if code, _, stderr := runCLI(t, "lab", "invoices", "--questions", "--pages", "--ocr-noise", "0.05", "--split", split, "--clients", fmt.Sprint(clients),
			"--per-client", "8", "--out", data); code != 0 {
			t.Fatal(stderr)
		}
	}
	test := filepath.Join(data, "test-0.jsonl")
	server := start(t, binary, "serve", "--json", "--job", job, "--dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0",
		"--validation", filepath.Join(data, "validation-0.jsonl"), "--test", test)
	token := server.await(t, `join with: starling join (\S+)`)[1]
	joined := []*process{}
	for i := range devices {
		joined = append(joined, start(t, binary, "join", "--trust-local", token, "--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)),
			"--identity", filepath.Join(dir, fmt.Sprintf("identity-%d.pem", i)), "--cache", filepath.Join(dir, "cache"),
			"--accounts", filepath.Join(dir, "accounts")))
	}
	for i, p := range append(joined, server) {
		if err := p.end(); err != nil {
			t.Fatalf("process %d: %v\n%s", i, err, p.said())
		}
	}
	var r outcome.Report
	if err := json.Unmarshal(server.out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, server.out.String())
	}
	score := func(checkpoint string) evaluation.Report {
		t.Helper()
		code, out, stderr := runCLI(t, "evaluate", "--checkpoint", checkpoint, "--json", test)
		var scored evaluation.Report
		if err := json.Unmarshal([]byte(out), &scored); err != nil || code != 0 {
			t.Fatalf("exit %d: %s%s", code, out, stderr)
		}
		return scored
	}
	first := score(r.Checkpoint).Ranks[0]
	if code, out, stderr := runCLI(t, "predict", "--checkpoint", r.Checkpoint, test); code != 0 || strings.Count(out, "\n") != 8 {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	exported, back := filepath.Join(dir, "merged"), filepath.Join(dir, "again")
	if code, _, stderr := runCLI(t, "export", "--checkpoint", r.Checkpoint, "--format", "merged", "--out", exported); code != 0 {
		t.Fatal(stderr)
	}
	if code, out, stderr := runCLI(t, "import", "--sequence", "40", "--base", exported, "--out", back); code != 0 {
		t.Fatalf("%s%s", out, stderr)
	}
	if s := score(back).Ranks[0]; math.Abs(s.Loss-first.Loss) > 1e-4 {
		t.Errorf("merged: %+v, was %+v", s, first)
	}
	lines, err := os.ReadFile(test)
	if err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(data, "bare.jsonl")
	if err := os.WriteFile(bare, []byte(strings.ReplaceAll(string(lines), `"image"`, `"picture"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCLI(t, "evaluate", "--checkpoint", r.Checkpoint, bare); code == 0 || !strings.Contains(stderr, "bare.jsonl:1:") || !strings.Contains(stderr, `no "image"`) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
