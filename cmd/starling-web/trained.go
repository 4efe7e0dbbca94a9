//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"syscall/js"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web/client"
)

// keep holds on to a model and says what it is, with all of it as bytes where it can
// be kept.
func (w *web) keep(t *edge.Trained) js.Value {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trained = t // of an earlier join there is none: a page joins once
	said := map[string]any{"version": int(t.Version), "rank": t.Rank, "archive": array(t.Archive)}
	if k, ok, err := t.Save(); ok && err == nil {
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
		k := edge.SavedModel{Version: uint64(version.Int()), Rank: rank.Int(), Archive: octets(m.Get("archive")), Job: octets(parts.Get("job")),
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

// errEnough is a text whose reader has stopped it.
var errEnough = errors.New("stopped")

func (w *web) predict(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) < 1 || len(args) > 3 {
			return nil, errors.New("predict takes a text or an object, whether the base is to say it alone, and a function")
		}
		w.mu.Lock()
		t := w.trained
		w.mu.Unlock()
		if t == nil {
			return nil, errors.New("this page has no model yet: a job gives it at its end")
		}
		e, err := example(args[0])
		if err != nil {
			return nil, err
		}
		how := edge.PredictOptions{Untrained: len(args) > 1 && args[1].Truthy()}
		if len(args) > 2 && args[2].Type() == js.TypeFunction {
			how.Written = func(text string) error {
				on, err := wait(args[2].Invoke(text))
				if err == nil && !on.Truthy() {
					err = errEnough
				}
				return err
			}
		}
		said, err := t.Predict(context.Background(), &e, how)
		if err != nil {
			return nil, err
		}
		out := make([]client.Prediction, len(said))
		for i, s := range said {
			out[i] = client.Prediction(s)
		}
		b, err := json.Marshal(out)
		return string(b), err
	})
}

// example is what a model is tried on.
func example(v js.Value) (e dataset.Example, err error) {
	if v.Type() != js.TypeObject {
		return dataset.Example{Text: text(v)}, nil
	}
	e = dataset.Example{Text: text(v.Get("text")), Question: text(v.Get("question"))}
	if blob := v.Get("picture"); blob.Type() == js.TypeObject {
		e.Image = picture(blob, v.Get("decode"), "the picture")
	}
	if blob := v.Get("recording"); blob.Type() == js.TypeObject {
		e.Recording, err = recording(blob, "the recording")
	}
	return e, err
}
