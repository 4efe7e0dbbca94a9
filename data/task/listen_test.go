package task

import (
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

func listening(t *testing.T, change func(c *model.Config)) Task {
	t.Helper()
	c := model.NewHubert(8, 16, 1)
	c.Speech.Groups, c.Speech.Positions = 4, 16
	change(&c)
	lay, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskListen}, 2)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(&model.Base{Config: c}, lay, 9)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func heard(t *testing.T, rate, n int) dataset.Example {
	t.Helper()
	s := &audio.Sound{Rate: rate, Samples: make([]float32, n)}
	for i := range s.Samples {
		s.Samples[i] = 0.3 + 0.1*float32(math.Sin(float64(i)/5))
	}
	r, err := dataset.Recorded(s)
	if err != nil {
		t.Fatal(err)
	}
	return dataset.Example{Recording: r, Label: 1}
}

func moments(x []float32) (mean, variance float64) {
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	return mean, variance
}

// A row has the samples of its frames; what fills it up is left out by masks, or heard.
func TestRecordingsFillTheirRows(t *testing.T) {
	const room, short = 400 + 8*320, 400 + 3*320
	for _, masked := range []bool{true, false} {
		k := listening(t, func(c *model.Config) { c.Speech.Masked = masked })
		rows, err := EncodeAll(k, []dataset.Example{heard(t, 16_000, room+5000), heard(t, 16_000, short), heard(t, 8_000, short/2)})
		if err != nil {
			t.Fatal(err)
		}
		for row, frames := range []int{9, 4, 4} {
			samples, keep := rows.Float32(Samples)[row*room:(row+1)*room], rows.Float32(Keep)[row*9:row*9+9]
			own := short
			if !masked || row == 0 {
				frames, own = 9, room
			}
			kept := 0
			for i, v := range keep {
				kept += int(v)
				if (v == 1) != (i < frames) {
					t.Errorf("masked %v, row %d: keep is %v, want %d frames", masked, row, keep, frames)
					break
				}
			}
			if mean, variance := moments(samples[:own]); math.Abs(mean) > 1e-3 || math.Abs(variance-1) > 1e-3 {
				t.Errorf("masked %v, row %d: mean %v and variance %v", masked, row, mean, variance)
			}
			for i := own; i < room; i++ {
				if samples[i] != 0 {
					t.Fatalf("masked %v, row %d: sample %d is %v", masked, row, i, samples[i])
				}
			}
			if rows.Int32(Labels)[row] != 1 || rows.Float32(Weights)[row] != 1 {
				t.Errorf("row %d: label %v, weight %v", row, rows.Int32(Labels)[row], rows.Float32(Weights)[row])
			}
		}
	}
}

func TestWhatCannotBeHeardIsRefused(t *testing.T) {
	k := listening(t, func(*model.Config) {})
	b := NewBatch(k.Columns(), 1)
	short := heard(t, 16_000, 399)
	if err := k.Encode(&short, b, 0); err == nil || !strings.Contains(err.Error(), "399") || !strings.Contains(err.Error(), "400") {
		t.Errorf("399 samples: %v", err)
	}
	if err := k.Encode(&dataset.Example{Text: "a text"}, b, 0); err == nil || !strings.Contains(err.Error(), "no recording") {
		t.Errorf("a text: %v", err)
	}
}
