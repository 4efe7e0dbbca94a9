package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/model"
)

// transcriber writes the folder of a small untrained base that transcribes generated words.
func transcriber(t *testing.T) string {
	t.Helper()
	c := model.NewHubert(16, 24, 1)
	c.NumAttentionHeads, c.IntermediateSize = 2, 48
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{16, 24}, model.Convolutions{32, 8}, model.Convolutions{16, 8}
	s.Rate, s.Positions, s.Groups, s.Norm, s.NormFirst, s.Masked, s.Reduction = dataset.SpokenRate, 8, 4, "layer", true, true, "mean"
	characters, err := c.WithCharacters([]string{"abcdefghijklmnopqrstuvwxyz"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := model.RandomBase(c, 3, characters)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// spokenFile writes generated words as WAV files and what is said in them as JSON Lines.
func spokenFile(t *testing.T, dir, split string, speakers, n int) (file, clips string) {
	t.Helper()
	set, err := dataset.Spoken(5, split, speakers, n)
	if err != nil {
		t.Fatal(err)
	}
	clips = filepath.Join(dir, split)
	if err := os.MkdirAll(clips, 0o700); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i, e := range set.Examples {
		sound, err := e.Recording.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		data, err := audio.EncodeWAV(sound)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%03d.wav", i)
		if err := os.WriteFile(filepath.Join(clips, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, `{"audio":"%s/%s","text":"%s","user":"%s"}`+"\n", split, name, set.Labels[e.Label], e.User)
	}
	file = filepath.Join(dir, split+".jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, clips
}

// Recordings with what is said in them all the way: served, joined over sockets, released,
// scored by word errors, transcribed, exported as what transformers' AutoModelForCTC loads, and
// imported again.
func TestServeTranscripts(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), transcriber(t)
	binary := build(t)
	const devices = 3
	job := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`
name: transcripts
task: transcribe
base: %q
rounds: 2
adapter: {rank_min: 1, rank_max: 2, sequence: 34}
training: {steps: 4, batch: 4}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, base, devices)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	validation, _ := spokenFile(t, dir, "validation", 2, 8)
	test, clips := spokenFile(t, dir, "test", 2, 10)
	server := start(t, binary, "serve", "--json", "--job", job, "--dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0",
		"--validation", validation, "--test", test)
	token := server.await(t, `join with: starling join (\S+)`)[1]
	var joined []*process
	for i := range devices {
		data, _ := spokenFile(t, dir, fmt.Sprintf("train-%d", i), 1, 8)
		joined = append(joined, start(t, binary, "join", "--trust-local", token, "--data", data,
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
	if r.BestWordErrors == nil || r.BaseWordErrors == nil || r.BestCharacterErrors == nil || math.Abs(r.BestAccuracy-(1-*r.BestWordErrors)) > 1e-12 || len(r.Validation) != 2 {
		t.Errorf("%s", server.out.String())
	}

	score := func(checkpoint string, more ...string) evaluation.Report {
		t.Helper()
		code, out, stderr := runCLI(t, append([]string{"evaluate", "--checkpoint", checkpoint, "--json", test}, more...)...)
		var scored evaluation.Report
		if err := json.Unmarshal([]byte(out), &scored); err != nil || code != 0 {
			t.Fatalf("exit %d: %s%s", code, out, stderr)
		}
		return scored
	}
	first := score(r.Checkpoint).Ranks[0]
	if first.WordErrors == nil || *first.WordErrors != *r.BestWordErrors || *first.CharacterErrors != *r.BestCharacterErrors {
		t.Errorf("evaluate says %+v, serve said %s", first, server.out.String())
	}
	if s := score(r.Checkpoint, "--beams", "4"); s.Ranks[0].WordErrors == nil {
		t.Errorf("%+v", s)
	}
	if code, out, stderr := runCLI(t, "evaluate", "--checkpoint", r.Checkpoint, "--rank", "all", test); code != 0 || !strings.Contains(out, "word errors") ||
		!strings.Contains(out, "10 recordings") || strings.Contains(out, "macro-F1") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}

	said := func(checkpoint string, more ...string) (all []predict.Transcript) {
		t.Helper()
		code, out, stderr := runCLI(t, append([]string{"predict", "--checkpoint", checkpoint, "--json", clips}, more...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		for row := range strings.Lines(out) {
			var p predict.Transcript
			if err := json.Unmarshal([]byte(row), &p); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		return all
	}
	before := said(r.Checkpoint)
	if len(before) != 10 || before[9].Line != 10 || !(before[0].Probability > 0 && before[0].Probability <= 1) {
		t.Errorf("%+v", before)
	}
	for i, p := range said(r.Checkpoint, "--beams", "16") {
		if p.Probability < before[i].Probability*(1-1e-9) {
			t.Errorf("16 beams find %+v, each frame's best is %+v", p, before[i])
		}
	}
	for want, args := range map[string][]string{
		"--top":   {"predict", "--checkpoint", r.Checkpoint, "--top", "2", clips},
		"beams":   {"predict", "--checkpoint", r.Checkpoint, "--beams", "1000", clips},
		"1..256":  {"evaluate", "--checkpoint", r.Checkpoint, "--beams", "0", test},
		"give th": {"predict", "--checkpoint", r.Checkpoint},
	} {
		if code, _, stderr := runCLI(t, args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}

	// Merged and as PEFT has it, and each imported again: the same scores.
	for name, again := range map[string]func(exported string) []string{
		"merged": func(exported string) []string { return []string{"--base", exported} },
		"peft":   func(exported string) []string { return []string{"--base", exported + "/base", "--adapter", exported} },
	} {
		exported, back := filepath.Join(dir, name), filepath.Join(dir, name+"-again")
		if code, _, stderr := runCLI(t, "export", "--checkpoint", r.Checkpoint, "--format", name, "--out", exported); code != 0 {
			t.Fatal(stderr)
		}
		args := append([]string{"import", "--task", "transcribe", "--sequence", "34", "--out", back}, again(exported)...)
		if code, out, stderr := runCLI(t, args...); code != 0 {
			t.Fatalf("%s: %s%s", name, out, stderr)
		}
		if s := score(back).Ranks[0]; math.Abs(s.Loss-first.Loss) > 1e-4 || *s.WordErrors != *first.WordErrors {
			t.Errorf("%s: %+v, was %+v", name, s, first)
		}
		for i, p := range said(back) {
			if p.Text != before[i].Text || math.Abs(p.Probability-before[i].Probability) > 1e-3*before[i].Probability {
				t.Errorf("%s: %+v, was %+v", name, p, before[i])
			}
		}
	}
	config, err := os.ReadFile(filepath.Join(dir, "merged", model.ConfigFile))
	if err != nil || !strings.Contains(string(config), `"HubertForCTC"`) {
		t.Errorf("%v: %s", err, config)
	}
	card, err := os.ReadFile(filepath.Join(dir, "peft", model.CardFile))
	if err != nil || !strings.Contains(string(card), "AutoModelForCTC") || !strings.Contains(string(card), "AutoProcessor") {
		t.Errorf("%v: %s", err, card)
	}
}

// Simulations and sweeps rank and report by word errors.
func TestSimulateTranscripts(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), transcriber(t)
	data, _ := spokenFile(t, dir, "words", 30, 90)
	args := []string{"--base", base, "--data", data, "--out", filepath.Join(dir, "runs")}
	set := []string{"--rounds", "1", "--cohort", "24", "--every", "0", "--set", "task=transcribe", "--set", "adapter.sequence=34",
		"--set", "training.steps=2", "--set", "adapter.rank_min=1", "--set", "adapter.rank_max=1"}
	code, out, stderr := runCLI(t, append(append([]string{"simulate", "--json"}, args...), set...)...)
	var r sweep.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if r.WordErrors == nil || math.Abs(r.Accuracy-(1-*r.WordErrors)) > 1e-12 || r.CharacterErrors == nil {
		t.Errorf("%s", out)
	}
	if code, out, stderr := runCLI(t, append(append([]string{"simulate"}, args...), set...)...); code != 0 || !strings.Contains(out, "word errors") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, _, stderr := runCLI(t, append(append([]string{"simulate"}, args...), "--set", "task=listen", "--set", "adapter.sequence=34")...); code == 0 ||
		!strings.Contains(stderr, "transcribe") {
		t.Errorf("another task over transcripts: exit %d, %s", code, stderr)
	}
	// A recording that is longer than the sequence is not cut: nobody knows what is said in a part.
	if code, _, stderr := runCLI(t, append(append([]string{"simulate"}, args...), append(set, "--set", "adapter.sequence=20")...)...); code == 0 ||
		!strings.Contains(stderr, "lasts 0.512 s") || !strings.Contains(stderr, "line ") {
		t.Errorf("a short sequence: exit %d, %s", code, stderr)
	}
}
