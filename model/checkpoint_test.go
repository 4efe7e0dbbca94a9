package model

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func tinyCheckpoint(t testing.TB) *Checkpoint {
	t.Helper()
	b, err := NewBase(tinyConfig(), tinyTensors(), []byte("{}"), NF4)
	if err != nil {
		t.Fatal(err)
	}
	return &Checkpoint{
		CheckpointInfo: CheckpointInfo{Job: "j", Version: 3, Seq: 5, Labels: []string{"a", "b", "c"},
			RankAccuracy: map[string]float64{"1": 0.5, "4": 0.75}, BestRank: 4, Privacy: "none: a test"},
		Base: b, Adapter: NewAdapter(tinyLayout(t), 9),
	}
}

func TestCheckpointRoundTrips(t *testing.T) {
	c := tinyCheckpoint(t)
	dir := filepath.Join(t.TempDir(), "new")
	if err := WriteCheckpoint(dir, c); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Adapter.Slice(4), c.Adapter.Slice(4)) || got.BestRank != 4 || got.RankAccuracy["4"] != 0.75 ||
		got.Method != c.Adapter.Layout().Method || !slices.Equal(got.Labels, c.Labels) || got.Privacy != c.Privacy {
		t.Errorf("came back as %+v", got.CheckpointInfo)
	}
	// PEFT finds what it looks for.
	st, err := os.ReadFile(filepath.Join(dir, AdapterFile))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseSafeTensors(st)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := parsed.Lookup("base_model.model.starling.encoder.layer.0.attention.self.query.lora_A.weight")
	if !ok || !slices.Equal(a.Shape, []int{4, 8}) {
		t.Errorf("lora_A: %v %v", ok, a.Shape)
	}
}

// A base is written once, and again where it is gone or another.
func TestCheckpointKeepsItsBase(t *testing.T) {
	dir := t.TempDir()
	weights := filepath.Join(dir, CheckpointBase, WeightsFile)
	write := func(c *Checkpoint) os.FileInfo {
		t.Helper()
		if err := WriteCheckpoint(dir, c); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCheckpoint(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(weights)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	c := tinyCheckpoint(t)
	first := write(c)
	c.Version++
	if again := write(c); !os.SameFile(first, again) {
		t.Error("the same base was written again")
	}
	if err := os.Remove(filepath.Join(dir, CheckpointBase, TokenizerFile)); err != nil {
		t.Fatal(err)
	}
	if again := write(c); os.SameFile(first, again) {
		t.Error("a base that had lost its tokenizer was kept")
	}
	second := write(c)
	other := tinyCheckpoint(t)
	other.Base.Tensors[0].Data[0]++
	base, err := NewBase(other.Base.Config, other.Base.Tensors, other.Base.Tokenizer, F32)
	if err != nil {
		t.Fatal(err)
	}
	other.Base = base
	if again := write(other); os.SameFile(second, again) {
		t.Error("another base was not written")
	}
}

func TestReadCheckpointRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ file, old, new, want string }{
		"another base":   {CheckpointFile, `"base_sha256": "`, `"base_sha256": "00`, "SHA-256"},
		"a rank too far": {CheckpointFile, `"best_rank": 4`, `"best_rank": 5`, "best_rank"},
		"r_max":          {CheckpointFile, `"r_max": 4`, `"r_max": 5`, "lora_A"},
		"labels":         {CheckpointFile, `"c"`, `"c","d"`, "classifier.weight"},
		"seq":            {CheckpointFile, `"seq": 5`, `"seq": 7`, "seq"},
		"no adapter":     {AdapterFile, "", "", AdapterFile},
	} {
		dir := t.TempDir()
		if err := WriteCheckpoint(dir, tinyCheckpoint(t)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, tc.file)
		if tc.old == "" {
			os.Remove(path)
		} else {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), tc.old) {
				t.Fatalf("%s: %s holds no %q", name, tc.file, tc.old)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(data), tc.old, tc.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadCheckpoint(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want it to name %q", name, err, tc.want)
		}
	}
}

// TestParseCheckpointInfo: the version is read where it stands now and where it stood.
func TestParseCheckpointInfo(t *testing.T) {
	for _, text := range []string{`{"version": 3, "seq": 5}`, `{"round": 3, "seq": 5}`} {
		if info, err := ParseCheckpointInfo([]byte(text)); err != nil || info.Version != 3 || info.Seq != 5 {
			t.Errorf("%s: %+v, %v", text, info, err)
		}
	}
	if _, err := ParseCheckpointInfo([]byte(`{"version": "3"}`)); err == nil {
		t.Error("a text is a version")
	}
}

// Checkpoints that lie beside each other share a base, where it is the same and has the
// same labels; neither changes with the other.
func TestCheckpointsShareABase(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, c *Checkpoint, beside ...string) os.FileInfo {
		t.Helper()
		for i := range beside {
			beside[i] = filepath.Join(dir, beside[i])
		}
		if err := WriteCheckpoint(filepath.Join(dir, name), c, beside...); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCheckpoint(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, name, CheckpointBase, WeightsFile))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	c := tinyCheckpoint(t)
	first := write("first", c, "none", "first")
	if err := os.Link(filepath.Join(dir, "first", CardFile), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if second := write("second", c, "none", "first"); !os.SameFile(first, second) {
		t.Error("the same base lies there twice")
	}
	named := tinyCheckpoint(t)
	named.Labels = []string{"x", "y", "z"}
	if third := write("third", named, "first", "second"); os.SameFile(first, third) {
		t.Error("a base with other labels was taken")
	}
	other := tinyCheckpoint(t)
	other.Base.Tensors[0].Data[0]++
	base, err := NewBase(other.Base.Config, other.Base.Tensors, other.Base.Tokenizer, F32)
	if err != nil {
		t.Fatal(err)
	}
	other.Base = base
	if fourth := write("fourth", other, "first"); os.SameFile(first, fourth) {
		t.Error("another base was taken")
	}
	write("second", other)
	if _, err := ReadCheckpoint(filepath.Join(dir, "first")); err != nil {
		t.Errorf("another base in the second changed the first: %v", err)
	}
	// A base that has lost a file, or was being linked, is written.
	if err := os.Remove(filepath.Join(dir, "first", CheckpointBase, TokenizerConfigFile)); err != nil {
		t.Fatal(err)
	}
	if fifth := write("fifth", c, "first"); os.SameFile(first, fifth) {
		t.Error("half a base was taken")
	}
}
