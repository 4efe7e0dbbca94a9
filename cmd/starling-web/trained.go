//go:build js

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"syscall/js"

	"github.com/starling-fl/starling/edge"
)

// predicted is a label and its probability; predict yields the likeliest first.
type predicted struct {
	Label       string  `json:"label"`
	Probability float64 `json:"probability"`
}

// keep holds on to a model and says what it is, with all of it as bytes where it can
// be kept.
func (w *web) keep(t *edge.Trained) js.Value {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trained = t // of an earlier join there is none: a page joins once
	said := map[string]any{"version": int(t.Version), "rank": t.Rank, "archive": array(t.Archive)}
	if k, ok, err := t.Keep(); ok && err == nil {
		said["kept"] = map[string]any{"job": array(k.Job), "adapter": array(k.Adapter), "program": array(k.Program), "base": array(k.Base)}
	}
	return js.ValueOf(said)
}

// open takes a model that an earlier page has kept.
func (w *web) open(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeObject {
			return nil, errors.New("open takes a model")
		}
		m := args[0]
		version, rank, parts := m.Get("version"), m.Get("rank"), m.Get("kept")
		if version.Type() != js.TypeNumber || rank.Type() != js.TypeNumber || parts.Type() != js.TypeObject {
			return nil, errors.New("what was kept is no model")
		}
		k := edge.Kept{Version: uint64(version.Int()), Rank: rank.Int(), Archive: octets(m.Get("archive")), Job: octets(parts.Get("job")),
			Adapter: octets(parts.Get("adapter")), Program: octets(parts.Get("program")), Base: octets(parts.Get("base"))}
		t, err := k.Open()
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.trained = t
		return nil, nil
	})
}

func (w *web) predict(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeString {
			return nil, errors.New("predict takes a text")
		}
		w.mu.Lock()
		t := w.trained
		w.mu.Unlock()
		if t == nil {
			return nil, errors.New("this page has no model yet: a job gives it at its end")
		}
		probabilities, err := t.Predict(context.Background(), args[0].String())
		if err != nil {
			return nil, err
		}
		out := make([]predicted, len(probabilities))
		for i, p := range probabilities {
			out[i] = predicted{t.Labels[i], p}
		}
		slices.SortStableFunc(out, func(a, b predicted) int { return cmp.Compare(b.Probability, a.Probability) })
		b, err := json.Marshal(out)
		return string(b), err
	})
}
