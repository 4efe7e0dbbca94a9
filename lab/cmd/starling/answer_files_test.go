package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/outcome"
	"github.com/starling-fl/starling/internal/app/predict"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// Documents from files all the way: written, served, joined over sockets, released,
// asked and scored.
func TestServeQuestionsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t)
	const devices = 3
	data := filepath.Join(dir, "data")
	for split, clients := range map[string]int{"train": devices, "validation": 1, "test": 1} {
		cmd := exec.CommandContext(watchdog.Context(t), binary, "lab", "invoices", "--questions", "--out", data, "--split", split,
			"--clients", fmt.Sprint(clients), "--per-client", "12")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("invoices: %v\n%s", err, out)
		}
	}
	job := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`
name: questions
task: answer
rounds: 2
adapter: {rank_min: 1, rank_max: 2, sequence: 96, answer: 16}
training: {steps: 3, batch: 4}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
enrolment: {secret: a secret of the test}
`, devices)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, binary, "serve", "--json", "--job", job, "--dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0",
		"--validation", filepath.Join(data, "validation-0.jsonl"), "--test", filepath.Join(data, "test-0.jsonl"))
	token := server.await(t, `join with: starling join (\S+)`)[1]
	var joined []*process
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
	var r outcome.AnswerReport
	if err := json.Unmarshal(server.out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, server.out.String())
	}
	if r.Rounds != 2 || r.Questions != 12 || r.Validations != 12 || len(r.Validation) != 2 || r.Before.ANLS < 0.2 || r.After.ANLS <= 0 {
		t.Errorf("%+v", r)
	}

	test := filepath.Join(data, "test-0.jsonl")
	code, out, stderr := runCLI(t, "evaluate", "--checkpoint", r.Checkpoint, "--json", test)
	var scored evaluation.AnswerReport
	if err := json.Unmarshal([]byte(out), &scored); err != nil || code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if scored.Questions != 12 || len(scored.Ranks) != 1 || !reflect.DeepEqual(scored.Ranks[0].AnswerScore, r.After) {
		t.Errorf("evaluate says %+v, serve said %+v", scored, r.After)
	}
	code, out, stderr = runCLI(t, "predict", "--checkpoint", r.Checkpoint, "--json", test)
	if code != 0 {
		t.Fatal(stderr)
	}
	right := 0
	rows := strings.Split(strings.TrimSpace(out), "\n")
	for i, row := range rows {
		var a predict.Answered
		if err := json.Unmarshal([]byte(row), &a); err != nil || a.Line != i+1 || a.Question == "" {
			t.Fatalf("%s: %v", row, err)
		}
		if strings.Contains(strings.ToLower(fileLine(t, test, i)), strings.ToLower(a.Answer)) {
			right++
		}
	}
	if len(rows) != 12 || right < 4 {
		t.Errorf("%d rows, %d of them in their documents", len(rows), right)
	}
}

func fileLine(t *testing.T, path string, n int) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")[n]
}

// What cannot be asked is refused with its line, and what a question lacks is named.
func TestQuestionsRefused(t *testing.T) {
	b, err := base.Documents()
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(b.Config, model.Method{Task: model.TaskAnswer, RMax: 1, Alpha: 1, Answer: 4}, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := model.WriteCheckpoint(dir, &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Seq: 48}, Base: b, Adapter: model.NewAdapter(lay, 1)}); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	asked := write("a.jsonl", `{"text":"Total 9.00","question":"what is the total?"}`+"\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{":1: has a question and no right answers", []string{"evaluate", "--checkpoint", dir, asked}},
		{"no right answers", []string{"evaluate", "--checkpoint", dir, write("b.tsv", "a\tb\n")}},
		{"unknown format", []string{"predict", "--checkpoint", dir, write("b.tsv", "a\tb\n")}},
		{`"question" is missing`, []string{"predict", "--checkpoint", dir, write("c.jsonl", `{"text":"a"}`)}},
		{"beyond the page", []string{"predict", "--checkpoint", dir, write("d.jsonl", `{"words":["a"],"boxes":[[0,0,9,2000]],"question":"q"}`)}},
		{"--top", []string{"predict", "--checkpoint", dir, "--top", "2", asked}},
	} {
		if code, _, stderr := runCLI(t, c.args...); code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit %d, %s, want %q", c.args, code, stderr, c.want)
		}
	}
	if code, out, stderr := runCLI(t, "predict", "--checkpoint", dir, "--json", asked); code != 0 || !strings.Contains(out, `"question":"what is the total?"`) {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}
