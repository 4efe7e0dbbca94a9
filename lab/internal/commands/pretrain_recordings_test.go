package commands

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/starling-fl/starling/audio"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
)

// A base that hears learns to tell two tones apart, and is the same by its seed.
func TestARecordingsBaseLearns(t *testing.T) {
	dir := t.TempDir()
	for i, label := range []string{"high", "low"} {
		for n := range 6 {
			s := &audio.Sound{Rate: 8000, Samples: make([]float32, 1200)}
			for k := range s.Samples {
				s.Samples[k] = float32(0.3 * math.Sin(2*math.Pi*float64(k)*(1800-1500*float64(i)+10*float64(n))/8000))
			}
			data, err := audio.EncodeWAV(s)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, label, strconv.Itoa(n)+".wav")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	make := func(seed uint64) (*model.Base, float64, float64) {
		t.Helper()
		s := defaultHeard()
		c := &s.Config
		c.HiddenSize, c.IntermediateSize, c.NumHiddenLayers, c.NumAttentionHeads = 16, 32, 1, 2
		c.Speech.Width, c.Speech.Groups, c.Speech.Positions, c.Speech.Projector = model.Convolutions{8, 8, 8}, 2, 4, 8
		s.Sequence, s.Batch, s.Steps, s.LearningRate, s.path, s.format, s.Seed = 6, 8, 120, 1e-2, dir, model.F32, seed
		s.Backend = engine.New().Backend
		var first, last float64
		b, err := makeHeardBase(t.Context(), s, nn.Progress(func(step int, loss float32) {
			if step <= 5 {
				first += float64(loss) / 5
			}
			if step > 115 {
				last += float64(loss) / 5
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		return b, first, last
	}
	a, first, last := make(1)
	if math.Abs(first-math.Ln2) > 0.2 || last > 0.3 {
		t.Errorf("the loss went from %.3f to %.3f, want from about ln 2 to less than 0.3", first, last)
	}
	b, _, _ := make(1)
	c, _, _ := make(2)
	sum := func(b *model.Base) [32]byte {
		s, err := b.SHA256()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if sum(a) != sum(b) || sum(a) == sum(c) {
		t.Error("the base does not follow from its seed alone")
	}
	if len(a.Tensors) != len(a.Config.BaseTensors()) {
		t.Errorf("%d tensors, want the base's %d and no head", len(a.Tensors), len(a.Config.BaseTensors()))
	}
	if _, err := makeHeardBase(t.Context(), heardSpec{path: t.TempDir()}, nil); err == nil {
		t.Error("an empty folder")
	}
}
