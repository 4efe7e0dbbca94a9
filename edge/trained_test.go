package edge

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/quant"
)

// offered is the end of a house's job: its adapter at a rank, as a coordinator
// offers it.
func (h *house) offered(base *model.Base, rank int) (*wire.Finished, *model.Adapter) {
	h.t.Helper()
	adapter := model.NewAdapter(h.layout, 7)
	values := adapter.Slice(rank)
	for i := range values {
		values[i] += 0.1 * float32(math.Sin(float64(i)))
	}
	ok(h.t, adapter.SetSlice(rank, values))
	packed, _, err := quant.PackUpdate(values, nil, "f32", "none")
	ok(h.t, err)
	pass := nn.ForwardSpec{Config: base.Config, Method: h.layout.Method, Classes: 2, Rank: rank, Batch: 1, Sequence: 8}
	program := compileWith(h.t, pass.Build, false)
	return &wire.Finished{Version: 3, Model: wire.Model{
		Rank: uint16(rank), Adapter: h.blob(packed), Archive: h.blob([]byte("a zip")),
		Programs: []wire.Program{{Host: host, Blob: h.blob(program)}},
	}}, adapter
}

// The model that a device takes along labels a text as GoMLX does with the same
// adapter, and does so when the coordinator is gone.
func TestTrainedModel(t *testing.T) {
	for _, rank := range []int{0, 2, 4} {
		h := newHouse(t)
		base := tinyBase(t)
		end, adapter := h.offered(base, rank)
		var got *Trained
		cfg := h.config(&constant{})
		cfg.Trained = func(m *Trained) { got = m }
		d := h.start(cfg)
		p := h.admit(false)
		p.send(end)
		if err := d.wait(t); err != nil {
			t.Fatal(err)
		}
		if got == nil {
			t.Fatal("no model came along")
		}
		if got.Rank != rank || got.Version != 3 || !bytes.Equal(got.Archive, []byte("a zip")) || len(got.Labels) != 2 {
			t.Errorf("rank %d: got %+v", rank, got)
		}
		h.mu.Lock()
		h.blobs = nil // the coordinator is gone
		h.mu.Unlock()
		// Kept and opened again, as after a page was loaded again, it is the same.
		kept, whole, err := got.Save()
		if err != nil || !whole {
			t.Fatalf("it cannot be kept: %t, %v", whole, err)
		}
		again, err := kept.Open()
		ok(t, err)
		if again.Rank != rank || again.Version != 3 || !bytes.Equal(again.Archive, got.Archive) || !slices.Equal(again.Labels, got.Labels) {
			t.Errorf("opened again: %+v", again)
		}
		predictor, err := nn.NewPredictor(h.layout, base, 8, nil)
		ok(t, err)
		tok, err := tokenizer.ParseFor(base.Tokenizer, base.Config.VocabSize, base.Config.PadTokenID)
		ok(t, err)
		for _, text := range []string{"fox", "", "fox fox fox fox fox fox fox fox fox fox fox"} {
			logits, err := predictor.Logits(context.Background(), adapter.Slice(rank), rank, [][]int32{tok.EncodeFixed(text, 8)})
			ok(t, err)
			want, err := ranked(task.OneOf, got.Labels, logits[0])
			ok(t, err)
			e := &dataset.Example{Text: text}
			have, err := got.Predict(context.Background(), e, PredictOptions{})
			ok(t, err)
			if kept, err := again.Predict(context.Background(), e, PredictOptions{}); err != nil || !slices.Equal(kept, have) {
				t.Errorf("opened again %q has %v, before %v, %v", text, kept, have, err)
			}
			for i := range want {
				if want[i].Label != have[i].Label || math.Abs(want[i].Probability-have[i].Probability) > 1e-5 {
					t.Errorf("rank %d: %q has %v, GoMLX says %v", rank, text, have, want)
				}
			}
		}
		ok(t, again.Close())
		if _, whole, err := got.Save(); whole || err != nil {
			t.Errorf("kept after it let go of its parts: %t, %v", whole, err)
		}
		ok(t, got.Close())
		if _, err := got.Predict(context.Background(), &dataset.Example{Text: "fox"}, PredictOptions{}); !errors.Is(err, ErrNoModel) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// A coordinator that offers something else than the job's model at the end gives
// the device nothing; the job has ended all the same.
func TestHostileModel(t *testing.T) {
	base := tinyBase(t)
	for name, bend := range map[string]func(h *house, f *wire.Finished){
		"rank beyond the job's":     func(_ *house, f *wire.Finished) { f.Model.Rank = 9 },
		"adapter of another rank":   func(_ *house, f *wire.Finished) { f.Model.Rank = 1 },
		"archive of a gigabyte":     func(_ *house, f *wire.Finished) { f.Model.Archive.Size = 1 << 30 },
		"archive with another hash": func(_ *house, f *wire.Finished) { f.Model.Archive.SHA256[0] ^= 1 },
		"training program as the pass": func(h *house, f *wire.Finished) {
			f.Model.Programs[0].Blob = h.blob(compile(h.t, step(base, 2, training.SGD), false))
		},
		"a program of nobody's knowing":   func(h *house, f *wire.Finished) { f.Model.Programs[0].Blob = h.blob([]byte("\x00asm\x01\x00\x00\x00")) },
		"a pass of shorter texts":         func(h *house, f *wire.Finished) { f.Model.Programs[0].Blob = h.blob(h.pass(base, 2, 4)) },
		"a pass of another rank":          func(h *house, f *wire.Finished) { f.Model.Programs[0].Blob = h.blob(h.pass(base, 3, 8)) },
		"an adapter that is not a number": func(h *house, f *wire.Finished) { f.Model.Adapter = h.blob([]byte{1, 2, 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			end, _ := h.offered(base, 2)
			bend(h, end)
			var got *Trained
			cfg := h.config(&constant{})
			cfg.Trained = func(m *Trained) { got = m }
			d := h.start(cfg)
			h.admit(false).send(end)
			if err := d.wait(t); err != nil {
				t.Fatalf("the job's end is an error: %v", err)
			}
			if got == nil {
				return
			}
			if p, err := got.Predict(context.Background(), &dataset.Example{Text: "fox"}, PredictOptions{}); err == nil {
				t.Errorf("it predicts %v", p)
			}
			ok(t, got.Close())
		})
	}
}

func (h *house) pass(base *model.Base, rank, seq int) []byte {
	pass := nn.ForwardSpec{Config: base.Config, Method: h.layout.Method, Classes: 2, Rank: rank, Batch: 1, Sequence: seq}
	return compileWith(h.t, pass.Build, false)
}

// What a page kept may have been changed, or be damaged: it opens as a model that
// was fetched is, or not at all.
func TestHostileKept(t *testing.T) {
	h := newHouse(t)
	end, _ := h.offered(tinyBase(t), 2)
	var got *Trained
	cfg := h.config(&constant{})
	cfg.Trained = func(m *Trained) { got = m }
	d := h.start(cfg)
	h.admit(false).send(end)
	ok(t, d.wait(t))
	whole, kept, err := got.Save()
	if err != nil || !kept {
		t.Fatalf("%t, %v", kept, err)
	}
	for name, bend := range map[string]func(k *SavedModel){
		"nothing":              func(k *SavedModel) { *k = SavedModel{} },
		"rank beyond the job":  func(k *SavedModel) { k.Rank = 9 },
		"rank below none":      func(k *SavedModel) { k.Rank = -1 },
		"another rank":         func(k *SavedModel) { k.Rank = 1 },
		"no base":              func(k *SavedModel) { k.Base = nil },
		"a base cut short":     func(k *SavedModel) { k.Base = k.Base[:len(k.Base)-1] },
		"a base with a flip":   func(k *SavedModel) { k.Base = slices.Clone(k.Base); k.Base[len(k.Base)/2] ^= 1 },
		"a job cut short":      func(k *SavedModel) { k.Job = k.Job[:len(k.Job)/2] },
		"an adapter cut short": func(k *SavedModel) { k.Adapter = k.Adapter[:10] },
		"a training program": func(k *SavedModel) {
			k.Program = compile(h.t, step(tinyBase(t), 2, training.SGD), false)
		},
		"no program": func(k *SavedModel) { k.Program = nil },
	} {
		k := whole
		bend(&k)
		m, err := k.Open()
		if err != nil {
			continue
		}
		if p, err := m.Predict(t.Context(), &dataset.Example{Text: "fox"}, PredictOptions{}); err == nil {
			t.Errorf("%s: it predicts %v", name, p)
		}
		ok(t, m.Close())
	}
}
