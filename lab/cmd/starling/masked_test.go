package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// A base is pretrained further on texts without labels that stay on devices: served,
// joined over sockets, scored by accuracy and perplexity of masked tokens, exported as
// what transformers' fill-mask loads.
func TestServeMaskedTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t)
	const devices = 3
	write := func(name string, from int) string {
		var b strings.Builder
		for n := range 24 {
			k := from + n
			fmt.Fprintf(&b, "invoice %d of the taxi to the airport for %s nights, %s\n\n",
				k, []string{"one", "two", "three"}[k%3], []string{"paid in cash", "paid by card"}[k%2])
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	job := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`
name: masked
task: pretrain
rounds: 2
adapter: {rank_min: 1, rank_max: 2, sequence: 24}
training: {steps: 6, batch: 8}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, devices)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	validation, test := write("validation.txt", 1000), write("test.txt", 2000)
	server := start(t, binary, "serve", "--json", "--unlabelled", "--job", job, "--dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0",
		"--validation", validation, "--test", test)
	token := server.await(t, `join with: starling join (\S+)`)[1]
	var joined []*process
	for i := range devices {
		joined = append(joined, start(t, binary, "join", "--trust-local", token, "--unlabelled", "--data", write(fmt.Sprintf("train-%d.txt", i), 100*i),
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
	if r.BasePerplexity == nil || r.BestPerplexity == nil || !(*r.BestPerplexity < *r.BasePerplexity) || len(r.Validation) != 2 {
		t.Errorf("%s", server.out.String())
	}
	code, out, stderr := runCLI(t, "evaluate", "--checkpoint", r.Checkpoint, "--json", test)
	var scored evaluation.Report
	if err := json.Unmarshal([]byte(out), &scored); err != nil || code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if s := scored.Ranks[0]; s.Perplexity == nil || *s.Perplexity != *r.BestPerplexity || s.Accuracy != r.BestAccuracy {
		t.Errorf("evaluate says %s, serve said %s", out, server.out.String())
	}
	fillsMasks(t, r.Checkpoint)
	merged := filepath.Join(dir, "merged")
	if code, _, stderr := runCLI(t, "export", "--checkpoint", r.Checkpoint, "--format", "merged", "--out", merged); code != 0 {
		t.Fatal(stderr)
	}
	config, err := os.ReadFile(filepath.Join(merged, model.ConfigFile))
	if err != nil || !strings.Contains(string(config), `"BertForMaskedLM"`) {
		t.Errorf("%v: %s", err, config)
	}
	// It is a base again, and its head a start.
	if _, err := model.LoadBaseDir(merged); err != nil {
		t.Error(err)
	}
	code, out, stderr = runCLI(t, "import", "--task", "pretrain", "--base", merged, "--sequence", "24", "--out", filepath.Join(dir, "again"))
	if code != 0 {
		t.Fatalf("%s%s", out, stderr)
	}
	code, out, stderr = runCLI(t, "evaluate", "--checkpoint", filepath.Join(dir, "again"), "--json", test)
	var again evaluation.Report
	if err := json.Unmarshal([]byte(out), &again); err != nil || code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if p, was := *again.Ranks[0].Perplexity, *r.BestPerplexity; p > 1.01*was || p < 0.99*was {
		t.Errorf("perplexity %v of the base that was exported, %v before", p, was)
	}
}

// fillsMasks asks for tokens in place of the masks of texts, from a file and from standard
// input: transformers' fill-mask gives the same in lab/bench/interop.
func fillsMasks(t *testing.T, checkpoint string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "open.txt")
	const texts = "the taxi to the [MASK] for two [MASK]\n\n[MASK] of the taxi\n"
	if err := os.WriteFile(file, []byte(texts), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCLI(t, "predict", "--checkpoint", checkpoint, "--json", "--top", "3", file)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var all []predict.Filled
	for row := range strings.Lines(out) {
		var f predict.Filled
		if err := json.Unmarshal([]byte(row), &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if len(all) != 3 || len(all[0].Masks) != 2 || len(all[1].Masks) != 0 || len(all[2].Masks) != 1 || all[2].Line != 3 {
		t.Fatalf("%s", out)
	}
	want := fmt.Sprintf("the taxi to the %s for two %s", all[0].Masks[0].Token, all[0].Masks[1].Token)
	if all[0].Text != want && !strings.Contains(want, "##") {
		t.Errorf("%q, want %q", all[0].Text, want)
	}
	for _, m := range append(all[0].Masks, all[2].Masks...) {
		if len(m.Top) != 3 || m.Top[0] != m.Likely || !(m.Top[0].Probability > m.Top[1].Probability && m.Top[1].Probability > m.Top[2].Probability) ||
			!(m.Probability > 0 && m.Probability < 1) {
			t.Errorf("%+v", m)
		}
	}
	if out, code := predictWith(t, texts, "--checkpoint", checkpoint); code != 0 || out != all[0].Text+"\n\n"+all[2].Text+"\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	if out, code := predictWith(t, texts, "--checkpoint", checkpoint, "--top", "2"); code != 0 || strings.Count(out, "\n") != 4 {
		t.Errorf("exit %d: a line for each mask, and the empty one's: %q", code, out)
	}
	if err := os.WriteFile(file, []byte("a [MASK]\nthe <mask> of another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCLI(t, "predict", "--checkpoint", checkpoint, file); code != 2 || !strings.Contains(stderr, "[MASK]") || strings.Count(stderr, ":2:") != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := runCLI(t, "predict", "--checkpoint", checkpoint, "--top", "99999999", file); code != 2 || !strings.Contains(stderr, "tokens") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// Simulations take the task from files with labels too, and a file without them is
// refused where the job has some.
func TestMaskedTextsFromFiles(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for n := range 60 {
		fmt.Fprintf(&b, "%s\tthe taxi to the airport for %d nights\n", []string{"a", "b"}[n%2], n)
	}
	file := filepath.Join(dir, "texts.tsv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"simulate", "--json", "--data", file, "--out", filepath.Join(dir, "runs"), "--rounds", "1", "--cohort", "30",
		"--examples", "4", "--every", "0", "--set", "adapter.rank_min=1", "--set", "adapter.rank_max=1", "--set", "adapter.sequence=16", "--set", "training.steps=1"}
	if code, out, stderr := runCLI(t, append(args, "--set", "task=pretrain")...); code != 0 || !strings.Contains(out, `"accuracy"`) {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, _, stderr := runCLI(t, append(args, "--unlabelled")...); code == 0 || !strings.Contains(stderr, "label") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	d, err := base.Documents()
	if err != nil {
		t.Fatal(err)
	}
	c := d.Config
	c.T5.Boxes = 0
	if _, err := model.NewLayout(c, model.Method{Task: model.TaskPretrain, RMax: 1, Alpha: 1}, 0); err == nil || !strings.Contains(err.Error(), "no boxes") {
		t.Errorf("a base that writes text and reads no boxes is pretrained on documents: %v", err)
	}
}
