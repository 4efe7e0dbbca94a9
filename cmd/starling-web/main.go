//go:build js

// Command starling-web is a device in a browser: package edge compiled for
// GOOS=js, offered to the page that loads it.
//
// It sets globalThis.starling to an object with
//
//	version            what it speaks, see edge.Protocol, a string
//	preview(source)    a Promise; reads a source, nothing leaves
//	sample(n, kind)    a Promise; a generated file, n in 0..999: invoices as JSON Lines,
//	                   for "pictures" digits as CSV, for "recordings" words as JSON of
//	                   label, user and wav (base64)
//	given(account)     a Promise; what the data has given, of an account as it was kept
//	forget(account, id) a Promise; an account without what tells of a job, to be kept
//	quote(options)     a Promise; tries what a round of a job takes here: url, token, trustLocal and
//	                   cores; JSON of client.Quote
//	limits(options)    a Promise; what this device's policy says of a job before anybody joins:
//	                   url, token, trustLocal, account and examples (how many the data has);
//	                   JSON of client.Limits
//	join(options, on)  a Promise; takes part until the job ends
//	predict(input, untrained, written)
//	                   a Promise; what the model that a join ended with says, or its
//	                   base alone, as it was before the job; written, a function, is
//	                   called with a text that the model writes as it grows, and returns
//	                   a Promise of whether to go on
//	open(model)        a Promise; takes a model that a join ended with earlier, for predict
//	stop()             ends join's promise with an error
//
// and calls globalThis.starlingReady, if there is one. A source is a file or pictures:
// fileName (its end decides a file's format), data (a Uint8Array), textColumn and
// labelColumn (strings, where the file names its columns) and unlabelled (where labels
// are to be left out); or fileName, pictures (a list
// of objects with label, picture (a Blob), name, user and provider) and decode (a
// function of a Blob that returns a Promise of width, height and pixels, a Uint8Array of
// red, green, blue and alpha); or fileName and recordings (a list of objects with label,
// recording (a Blob of a WAV or FLAC file), or text (what is said) in place of label, name, user and provider), in the full build. options is a source and url (the coordinator's address,
// http(s) or ws(s)), token (a join token; without one the address alone, for
// coordinators that ask for no secret), identity (32 bytes that an earlier join
// returned), trustLocal (true: the owner says that the coordinator is their own, on this
// machine), accept (an object: limits of the policy that the owner widens, by key), account (a Uint8Array, what was kept last for this data), keep (a function that
// keeps an account, a Uint8Array, and returns a Promise) and cores (a number, the workers
// that compute, where the page offers more than its own: see package wasm). on is called with every
// edge.Event as JSON and, where it has changed, JSON of what the data has given, a list
// of client.Given, which given yields, too. preview yields JSON of client.Preview; join yields {identity, model},
// where model is null or has version, rank, archive (a Uint8Array, a zip) and, where all
// of it can be kept, kept (an object of Uint8Arrays, for open); predict takes a text or
// an object with text, question, recording, or picture and decode, and yields JSON of a list of
// client.Prediction. An error has code, a client.Code, and
// one of join limits, where its owner could accept what it
// is about: JSON of a list of edge.PolicyError.
//
// The file's content stays in this process: what leaves it is what package
// edge sends.
package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"syscall/js"

	"github.com/starling-fl/starling/edge"
)

func main() {
	w := &web{}
	js.Global().Set("starling", map[string]any{
		"version": edge.Protocol(),
		"preview": js.FuncOf(preview),
		"sample":  js.FuncOf(sample),
		"given":   js.FuncOf(given),
		"forget":  js.FuncOf(forget),
		"quote":   js.FuncOf(quote),
		"limits":  js.FuncOf(limits),
		"join":    js.FuncOf(w.join),
		"predict": js.FuncOf(w.predict),
		"open":    js.FuncOf(w.open),
		"stop":    js.FuncOf(w.stop),
	})
	if ready := js.Global().Get("starlingReady"); ready.Type() == js.TypeFunction {
		ready.Invoke()
	}
	select {} // the page ends the worker
}

// web is the page's client. One join may run at a time.
type web struct {
	mu      sync.Mutex
	cancel  context.CancelFunc // by mu; nil: no join is running
	trained *edge.Trained      // by mu; nil: no join has ended with a model
}

// errBusy is a second join beside a running one.
var errBusy = errors.New("this page is taking part already")

func (w *web) join(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 2 || args[0].Type() != js.TypeObject || args[1].Type() != js.TypeFunction {
			return nil, errors.New("join takes an object of options and a function")
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.mu.Lock()
		if w.cancel != nil {
			w.mu.Unlock()
			return nil, errBusy
		}
		w.cancel = cancel
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.cancel = nil
		}()
		return w.run(ctx, args[0], args[1])
	})
}

func (w *web) stop(js.Value, []js.Value) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
	return nil
}

// run is one join from beginning to end.
func (w *web) run(ctx context.Context, options, on js.Value) (any, error) {
	set, err := read(options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", edge.ErrData, err)
	}
	cfg := edge.Config{Data: edge.Examples(set)}
	if cfg.Token, err = token(text(options.Get("token")), text(options.Get("url"))); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	if seed := octets(options.Get("identity")); len(seed) == ed25519.SeedSize {
		cfg.Identity = ed25519.NewKeyFromSeed(seed)
	} else if len(seed) != 0 {
		return nil, fmt.Errorf("%w: identity has %d bytes, %d expected", errOptions, len(seed), ed25519.SeedSize)
	} else {
		cfg.Identity, err = edge.NewIdentity()
	}
	if err != nil {
		return nil, err
	}
	if cfg.Account, err = account(options); err != nil {
		return nil, err
	}
	cfg.TrustLocal = options.Get("trustLocal").Truthy()
	if err := accept(&cfg, options.Get("accept")); err != nil {
		return nil, err
	}
	told := ""
	cfg.Progress = func(e edge.Event) {
		b, err := json.Marshal(e)
		if err != nil { // an event always can be written
			return
		}
		if now := givenJSON(cfg.Account); now != told {
			told = now
			on.Invoke(string(b), now)
			return
		}
		on.Invoke(string(b))
	}
	trainer := edge.NewProgramTrainer(1)
	if cores := options.Get("cores"); cores.Type() == js.TypeNumber {
		trainer.Cores = cores.Int()
	}
	cfg.Trainer = trainer
	model := js.Null()
	cfg.Trained = func(t *edge.Trained) { model = w.keep(t) }
	if err := errors.Join(edge.Run(ctx, cfg), trainer.Close()); err != nil {
		return nil, err
	}
	return map[string]any{"identity": array(cfg.Identity.Seed()), "model": model}, nil
}

// token is the join token, or one made from the page's address. A browser
// cannot pin a certificate: it has checked the page's own already.
func token(given, address string) (string, error) {
	if given != "" {
		return given, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("address of the coordinator: %w", err)
	}
	scheme := map[string]string{"ws": "http", "wss": "https", "http": "http", "https": "https"}[u.Scheme]
	if scheme == "" {
		return "", fmt.Errorf("address of the coordinator: scheme %q", u.Scheme)
	}
	// A proxy may serve it below a path; the WebSocket's address was once asked for.
	below := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1/join")
	return edge.JoinToken(scheme + "://" + u.Host + below)
}

// promise runs work in a goroutine of its own: the browser's event loop must
// not be blocked by a callback.
func promise(work func() (any, error)) js.Value {
	executor := js.FuncOf(func(_ js.Value, settle []js.Value) any {
		go func() {
			v, err := work()
			if err != nil {
				settle[1].Invoke(rejection(err))
				return
			}
			settle[0].Invoke(v)
		}()
		return nil
	})
	defer executor.Release() // a Promise calls its executor at once
	return js.Global().Get("Promise").New(executor)
}

// rejection is an error as the page gets it: in its owner's words.
func rejection(err error) js.Value {
	e := js.Global().Get("Error").New(edge.Explain(err))
	e.Set("code", string(codeOf(err)))
	if limits := edge.PolicyErrors(err); len(limits) > 0 {
		if b, err := json.Marshal(limits); err == nil { // strings always can be written
			e.Set("limits", string(b))
		}
	}
	return e
}

// text is a string, "" if the value is none.
func text(v js.Value) string {
	if v.Type() != js.TypeString {
		return ""
	}
	return v.String()
}

// octets copies a Uint8Array, nil if the value is none.
func octets(v js.Value) []byte {
	if v.Type() != js.TypeObject || !v.InstanceOf(js.Global().Get("Uint8Array")) {
		return nil
	}
	b := make([]byte, v.Length())
	js.CopyBytesToGo(b, v)
	return b
}

// array copies bytes to a Uint8Array.
func array(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}
