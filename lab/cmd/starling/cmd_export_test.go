package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // the reference

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/nn"
)

// exportedCheckpoint is a checkpoint over the default base whose adapter changes
// something at every rank.
func exportedCheckpoint(t *testing.T) (dir string, ck *model.Checkpoint) {
	t.Helper()
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(b.Config, model.Method{RMax: 4, Alpha: 6}, 3)
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(lay, 7)
	v := a.Slice(4)
	for i := range v {
		v[i] += 0.3 * float32(math.Sin(float64(i)*1.3))
	}
	if err := a.SetSlice(4, v); err != nil {
		t.Fatal(err)
	}
	ck = &model.Checkpoint{Base: b, Adapter: a, CheckpointInfo: model.CheckpointInfo{
		Job: "letters", Version: 5, Seq: 32, Labels: []string{"a", "b", "c"}, BestRank: 2,
		RankAccuracy: map[string]float64{"2": 0.75, "4": 0.5}, Privacy: "epsilon 2 at delta 1e-6", Devices: 24, UpdateBytes: 1234}}
	dir = filepath.Join(t.TempDir(), "checkpoint")
	if err := model.WriteCheckpoint(dir, ck); err != nil {
		t.Fatal(err)
	}
	return dir, ck
}

func logitsOf(t *testing.T, ck *model.Checkpoint, rank int) []float32 {
	t.Helper()
	tok, err := tokenizer.Parse(ck.Base.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	p, err := nn.NewPredictor(ck.Adapter.Layout(), ck.Base, ck.Seq, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Logits(t.Context(), ck.Adapter.Slice(rank), rank, [][]int32{tok.EncodeFixed("invoice total due", ck.Seq)})
	if err != nil {
		t.Fatal(err)
	}
	return l[0]
}

// What is exported at a rank and imported again scores as that rank does.
func TestExportAndImportAgree(t *testing.T) {
	dir, ck := exportedCheckpoint(t)
	for rank, flag := range map[int]string{1: "1", 2: "best", 4: "4"} {
		want := logitsOf(t, ck, rank)
		out := filepath.Join(t.TempDir(), "out")
		if code, _, stderr := runCLI(t, "export", "--checkpoint", dir, "--rank", flag, "--out", out); code != 0 {
			t.Fatal(stderr)
		}
		merged := filepath.Join(t.TempDir(), "merged")
		if code, _, stderr := runCLI(t, "export", "--checkpoint", dir, "--rank", flag, "--format", "merged", "--out", merged); code != 0 {
			t.Fatal(stderr)
		}
		for name, args := range map[string][]string{
			"peft":   {"--base", filepath.Join(out, "base"), "--adapter", out},
			"merged": {"--base", merged},
		} {
			again := filepath.Join(t.TempDir(), "again")
			args = append([]string{"import", "--sequence", "32", "--out", again}, args...)
			if code, _, stderr := runCLI(t, args...); code != 0 {
				t.Fatal(stderr)
			}
			back, err := model.ReadCheckpoint(again)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(back.Labels, ck.Labels) { // of id2label
				t.Errorf("%s: labels %q, want %q", name, back.Labels, ck.Labels)
			}
			at := rank
			if name == "merged" {
				at = 0
			}
			for i, x := range logitsOf(t, back, at) {
				if d := math.Abs(float64(x - want[i])); d > 1e-5*math.Abs(float64(want[i])) {
					t.Errorf("%s at rank %d: logit %d is %v, want %v", name, rank, i, x, want[i])
				}
			}
		}
		card, err := os.ReadFile(filepath.Join(out, model.CardFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"Epsilon 2 at delta", "24 devices", "1234 bytes a round", "trust_remote_code=True", "PeftModel"} {
			if !strings.Contains(string(card), text) {
				t.Errorf("the card does not say %q", text)
			}
		}
	}
}

// An import that had to make a head says so on stderr, in its report and in the card; one whose base has
// a head does not.
func TestImportSaysThatAHeadIsFresh(t *testing.T) {
	dir, _ := exportedCheckpoint(t)
	for name, c := range map[string]struct {
		adapter bool
		fresh   bool
	}{"base alone": {false, true}, "adapter with its head": {true, false}} {
		out := filepath.Join(t.TempDir(), "again")
		args := []string{"import", "--base", filepath.Join(dir, "base"), "--labels", "a,b,c", "--json", "--out", out}
		if c.adapter {
			args = append(args, "--adapter", dir)
		}
		code, stdout, stderr := runCLI(t, args...)
		card, err := os.ReadFile(filepath.Join(out, model.CardFile))
		if code != 0 || err != nil {
			t.Fatalf("%s: %d %s, %v", name, code, stderr, err)
		}
		for where, has := range map[string]bool{"stderr": strings.Contains(stderr, "the head is fresh"), "report": strings.Contains(stdout, `"fresh_head":true`),
			"card": strings.Contains(string(card), "Its head is fresh")} {
			if has != c.fresh {
				t.Errorf("%s: %s says %v: %s %s", name, where, has, stderr, stdout)
			}
		}
	}
}

// A sequence that the base has no positions for is said where it is asked for, not by predict.
func TestImportRefusesASequenceBeyondTheBase(t *testing.T) {
	dir, _ := exportedCheckpoint(t)
	out := filepath.Join(t.TempDir(), "again")
	for _, sequence := range []string{"9999", "-1"} {
		code, _, stderr := runCLI(t, "import", "--base", filepath.Join(dir, "base"), "--labels", "a,b,c", "--sequence", sequence, "--out", out)
		if code != 2 || !strings.Contains(stderr, "--sequence is "+sequence) || !strings.Contains(stderr, "positions") {
			t.Errorf("--sequence %s: %d %q", sequence, code, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a checkpoint was written")
	}
}

func TestExportRefuses(t *testing.T) {
	dir, _ := exportedCheckpoint(t)
	out := filepath.Join(t.TempDir(), "out")
	for want, args := range map[string][]string{
		"best or 0":              {"--rank", "5"},
		"--format":               {"--format", "onnx"},
		"head alone":             {"--rank", "0"},
		"--out":                  {"--out", ""},
		"of its own":             {"--out", dir},
		"there is one in " + dir: {"--checkpoint", filepath.Dir(dir)},
		"starling import makes":  {"--checkpoint", t.TempDir()},
	} {
		args = append([]string{"export", "--checkpoint", dir, "--out", out}, args...)
		if code, _, stderr := runCLI(t, args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %q, want it to say %q", args, code, stderr, want)
		}
	}
}

func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}
