package commands

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
)

// tones are a folder of recordings of two labels.
func tones(t *testing.T) string {
	t.Helper()
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
	return dir
}

// smallHeard is a base that hears tones in milliseconds.
func smallHeard(dir string) *heardBase {
	s := defaultHeard()
	c := &s.Config
	c.HiddenSize, c.IntermediateSize, c.NumHiddenLayers, c.NumAttentionHeads = 16, 32, 1, 2
	c.Speech.Width, c.Speech.Groups, c.Speech.Positions, c.Speech.Projector = model.Convolutions{8, 8, 8}, 2, 4, 8
	s.Sequence, s.Batch, s.Steps, s.LearningRate, s.path, s.Seed = 6, 8, 120, 1e-2, dir, 1
	s.Backend = engine.New().Backend
	return s
}

// A base that is trained further begins with what it knows, in its own shape, and is another by what it began with; what
// hears nothing, and sizes beside the base's own, are refused.
func TestARecordingsBaseIsTrainedFurther(t *testing.T) {
	dir := tones(t)
	write := func(b *model.Base) string {
		t.Helper()
		to := t.TempDir()
		files, err := model.Release{Base: b}.Files()
		if err == nil {
			err = model.WriteFiles(to, files)
		}
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	first := smallHeard(dir)
	first.Steps = 60
	a, err := first.train(t.Context(), model.F32, nil)
	if err != nil {
		t.Fatal(err)
	}
	further := func(rate float64) *model.Base {
		t.Helper()
		s := defaultHeard() // of which the base's shape takes the place
		s.from, s.path, s.Backend = write(a), dir, first.Backend
		s.Sequence, s.Batch, s.Steps, s.LearningRate = 6, 8, 5, rate
		b, err := s.train(t.Context(), model.F32, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	far := func(b *model.Base) (most float64) {
		for i, x := range b.Tensors {
			for k, v := range x.Data {
				most = max(most, math.Abs(float64(v-a.Tensors[i].Data[k])))
			}
		}
		return most
	}
	if b := further(1e-9); b.Config != a.Config || far(b) > 1e-6 {
		t.Errorf("it does not begin with the base: %v from it", far(b))
	}
	if d := far(further(1e-2)); d < 1e-3 {
		t.Errorf("it learns nothing further: %v", d)
	}
	deaf := smallHeard(dir)
	deaf.from = write(tiny.Base(t, 16, 1, 8))
	if _, err := deaf.train(t.Context(), model.F32, nil); err == nil || !strings.Contains(err.Error(), "hears nothing") {
		t.Errorf("a base of text: %v", err)
	}
	hidden := func(flag string) bool { return flag == "hidden" }
	if err := deaf.resize(hidden, sizes{hidden: 32}); err == nil || !strings.Contains(err.Error(), "--from") {
		t.Errorf("another size than the base's: %v", err)
	}
}

// A base that hears learns to tell two tones apart, and is the same by its seed.
func TestARecordingsBaseLearns(t *testing.T) {
	dir := tones(t)
	make := func(seed uint64) (*model.Base, float64, float64) {
		t.Helper()
		s := smallHeard(dir)
		s.Seed = seed
		var first, last float64
		b, err := s.train(t.Context(), model.F32, pretraining.Progress(func(step int, loss float32) {
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
	if _, err := (&heardBase{path: t.TempDir()}).train(t.Context(), model.F32, nil); err == nil {
		t.Error("an empty folder")
	}
}
