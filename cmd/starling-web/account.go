//go:build js

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"syscall/js"

	"github.com/starling-fl/starling/edge"
)

// given is what the data has given to one job, as seen from this device; the
// latest job stands first.
type given struct {
	Name        string  `json:"name"`
	Promised    uint64  `json:"promised"`          // rounds that the job announced
	Contributed uint64  `json:"contributed"`       // rounds in which an update was handed over
	Committed   uint64  `json:"committed"`         // of these, what the coordinator said it released
	Last        int64   `json:"last"`              // seconds since 1970
	Epsilon     float64 `json:"epsilon,omitempty"` // if the noise is as announced; left out where none is
	Delta       float64 `json:"delta,omitempty"`
}

// givenJSON lists the account's jobs.
func givenJSON(account *edge.Account) string {
	list := []given{}
	for _, j := range account.Jobs() {
		g := given{Name: j.Name, Promised: j.Promised, Contributed: j.Contributed, Committed: j.Committed, Last: j.Last}
		if cost, ok, err := j.Epsilon(); ok && err == nil {
			g.Epsilon, g.Delta = cost.Epsilon, cost.Delta
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b given) int { return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Name, b.Name)) })
	b, err := json.Marshal(list)
	if err != nil { // an epsilon that is no number
		return "[]"
	}
	return string(b)
}

// account is what the page kept for this data; without a function to keep it, it
// is in memory alone.
func account(options js.Value) (*edge.Account, error) {
	keep := options.Get("keep")
	if keep.Type() != js.TypeFunction {
		return edge.NewAccount(octets(options.Get("account")), nil)
	}
	return edge.NewAccount(octets(options.Get("account")), func(b []byte) error { return wait(keep.Invoke(array(b))) })
}

// wait blocks until a promise is settled.
func wait(promise js.Value) error {
	done := make(chan error, 1)
	yes := js.FuncOf(func(js.Value, []js.Value) any {
		done <- nil
		return nil
	})
	defer yes.Release()
	no := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- errors.New(args[0].Call("toString").String())
		return nil
	})
	defer no.Release()
	promise.Call("then", yes, no)
	return <-done
}

// accept widens the default policy toward this coordinator by what the owner has
// accepted: an object of strings by the policy's keys.
func accept(cfg *edge.Config, wanted js.Value) error {
	policy, _ := edge.PolicyFor(cfg.Token)
	cfg.Policy = &policy
	if wanted.Type() != js.TypeObject {
		return nil
	}
	entries := js.Global().Get("Object").Call("entries", wanted)
	for i := range entries.Length() {
		entry := entries.Index(i)
		if err := cfg.Allow(entry.Index(0).String(), text(entry.Index(1))); err != nil {
			return err
		}
	}
	return nil
}
