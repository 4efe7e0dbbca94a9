package model

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Frames and samples are as PyTorch counts a convolution's outputs.
func TestSpeechCountsFrames(t *testing.T) {
	s := NewHubert(512, 768, 2).Speech
	for samples, frames := range map[int]int{0: 0, 399: 0, 400: 1, 719: 1, 720: 2, 16_000: 49, 15_759: 48, 15_760: 49, 32_000: 99} {
		if got := s.Frames(samples); got != frames {
			t.Errorf("%d samples make %d frames, want %d", samples, got, frames)
		}
	}
	for frames := 1; frames < 300; frames++ {
		if n := s.Samples(frames); s.Frames(n) != frames || s.Frames(n-1) != frames-1 {
			t.Errorf("%d frames are made of %d samples, which make %d", frames, n, s.Frames(n))
		}
	}
}

// A folder that transformers wrote is read, written and read again as the same base, and
// tensors may have the names that PyTorch gave weight norm before version 2.
func TestSpeechFoldersComeBack(t *testing.T) {
	dir := filepath.Join("nn", "testdata", "speech", "distilhubert")
	b, err := LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b.Config.Speech.Rate != 8000 || b.Config.Speech.ProjectedNorm || b.Config.NumHiddenLayers != 2 {
		t.Errorf("%+v", b.Config)
	}
	out := t.TempDir()
	if err := b.WriteDir(out); err != nil {
		t.Fatal(err)
	}
	again, err := LoadBaseDir(out)
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := b.SHA256()
	two, err2 := again.SHA256()
	if err := errors.Join(err1, err2); err != nil || one != two || again.Config != b.Config {
		t.Errorf("another base: %+v, %v", again.Config, err)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ParseBlob(blob); err != nil || p.Config != b.Config {
		t.Errorf("%v", err)
	}
	data, err := os.ReadFile(filepath.Join(out, WeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	st, err := ParseSafeTensors(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range st.Tensors {
		st.Tensors[i].Name = strings.NewReplacer(".parametrizations.weight.original0", ".weight_g", ".parametrizations.weight.original1", ".weight_v").Replace(st.Tensors[i].Name)
	}
	if data, err = st.Encode(); err == nil {
		err = os.WriteFile(filepath.Join(out, WeightsFile), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	old, err := LoadBaseDir(out)
	if err != nil {
		t.Fatal(err)
	}
	if three, err := old.SHA256(); err != nil || three != one {
		t.Errorf("under older names another base: %v", err)
	}
}

func TestSpeechConfigurationsAreRefused(t *testing.T) {
	good := NewHubert(8, 32, 1).speechConfig()
	for name, c := range map[string]struct {
		key   string
		value any
		says  string
	}{
		"lists":    {"conv_kernel", []int{10, 3}, "as many of each"},
		"nine":     {"conv_dim", []int{1, 1, 1, 1, 1, 1, 1, 1, 1}, "at most 8"},
		"zero":     {"conv_stride", []int{5, 0, 2, 2, 2, 2, 2}, "within 1"},
		"kernel":   {"conv_kernel", []int{65, 3, 3, 3, 3, 2, 2}, "kernel 65"},
		"window":   {"conv_stride", []int{64, 64, 64, 64, 64, 64, 64}, "a frame is made of"},
		"groups":   {"num_conv_pos_embedding_groups", 5, "multiple of num_conv_pos_embedding_groups"},
		"norm":     {"feat_extract_norm", "batch", "feat_extract_norm"},
		"act":      {"feat_extract_activation", "mish", "feat_extract_activation"},
		"weighted": {"use_weighted_layer_sum", true, "use_weighted_layer_sum"},
		"batch":    {"conv_pos_batch_norm", true, "conv_pos_batch_norm"},
		"heads":    {"num_attention_heads", 3, "num_attention_heads"},
	} {
		doc := map[string]any{}
		for k, v := range good {
			doc[k] = v
		}
		doc[c.key] = c.value
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(data); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want what says %q", name, err, c.says)
		}
	}
	c := NewHubert(8, 32, 1)
	if err := c.CheckTask(TaskClassify); err == nil || !strings.Contains(err.Error(), "recordings") {
		t.Errorf("texts over recordings: %v", err)
	}
	if c.DefaultTask() != TaskListen {
		t.Errorf("default task %s", c.DefaultTask())
	}
	if err := BERT(100, 32, 1, 0, 10).CheckTask(TaskListen); err == nil || !strings.Contains(err.Error(), "hubert") {
		t.Errorf("recordings over texts: %v", err)
	}
}

// A release's head has the shapes that transformers gave it, though its maps are not all as
// wide as the encoder.
func TestSpeechHeadsComeBack(t *testing.T) {
	dir := os.DirFS(filepath.Join("nn", "testdata", "speech", "wav2vec2"))
	b, err := LoadBase(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := LoadHead(dir, b.Config, TaskListen)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]float32{}
	for name, tensor := range head {
		values[name] = tensor.Data
	}
	out := t.TempDir()
	if err := (Release{Base: b, Task: TaskListen, Values: values, Labels: []string{"a", "b", "c"}}).Write(out); err != nil {
		t.Fatal(err)
	}
	again, err := LoadHead(os.DirFS(out), b.Config, TaskListen)
	if err != nil || len(again) != 4 {
		t.Fatalf("%d tensors, %v", len(again), err)
	}
	for name, want := range head {
		if got := again[name]; !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%s: shape %v, want %v", name, got.Shape, want.Shape)
		}
	}
}
