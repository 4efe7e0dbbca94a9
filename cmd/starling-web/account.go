//go:build js

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"syscall/js"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web/client"
)

// givenJSON lists the account's jobs, the latest first.
func givenJSON(account *edge.Account) string {
	list := []client.Given{}
	for _, j := range account.Jobs() {
		g := client.Given{ID: j.Task, Name: j.Name, Promised: j.Promised, Contributed: j.Contributed, Committed: j.Committed, Last: j.Last,
			Up: j.Up, Down: j.Down, Forgotten: j.Forgotten}
		if cost, ok, err := j.Epsilon(); ok && err == nil {
			g.Epsilon, g.Delta = cost.Epsilon, cost.Delta
		}
		if alone, ok, err := j.Untrusted(); ok && err == nil && !math.IsInf(alone.Epsilon, 0) {
			g.Untrusted = alone.Epsilon
		}
		if bits, ok := j.Bits(); ok && !math.IsInf(bits, 0) {
			g.Bits = bits
			g.ExampleBits, _ = j.ExampleBits()
		}
		for _, m := range j.History {
			g.History = append(g.History, client.GivenBy(m))
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b client.Given) int { return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Name, b.Name)) })
	b, err := json.Marshal(list)
	if err != nil { // an epsilon that is no number
		return "[]"
	}
	return string(b)
}

// given says what the data of an account, as it was kept, has given: nothing where none was.
func given(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 {
			return nil, errors.New("given takes an account")
		}
		a, err := edge.NewAccount(octets(args[0]), nil)
		if err != nil {
			return nil, err
		}
		return givenJSON(a), nil
	})
}

// forget takes from an account, as it was kept, what tells of a job, and gives what is to be
// kept in its place.
func forget(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 2 {
			return nil, errors.New("forget takes an account and a job's id")
		}
		var kept []byte
		a, err := edge.NewAccount(octets(args[0]), func(b []byte) error { kept = b; return nil })
		if err != nil {
			return nil, err
		}
		if _, err := a.Forget(text(args[1])); err != nil {
			return nil, err
		}
		return array(kept), nil
	})
}

// account is what the page kept for this data; without a function to keep it, it
// is in memory alone.
func account(options js.Value) (*edge.Account, error) {
	keep := options.Get("keep")
	if keep.Type() != js.TypeFunction {
		return edge.NewAccount(octets(options.Get("account")), nil)
	}
	return edge.NewAccount(octets(options.Get("account")), func(b []byte) error {
		_, err := wait(keep.Invoke(array(b)))
		return err
	})
}

// accept notes in the account what the owner has accepted of this coordinator beyond the policy of
// those who have chosen none: an object of strings by the policy's keys.
func accept(cfg *edge.Config, wanted js.Value) error {
	policy, err := edge.PolicyFor(cfg.Token, cfg.TrustLocal)
	if err != nil {
		return err
	}
	cfg.Policy = &policy
	if wanted.Type() != js.TypeObject {
		return nil
	}
	var accepted []edge.PolicyError
	entries := js.Global().Get("Object").Call("entries", wanted)
	for i := range entries.Length() {
		entry := entries.Index(i)
		accepted = append(accepted, edge.PolicyError{Key: entry.Index(0).String(), Have: text(entry.Index(1))})
	}
	if len(accepted) == 0 {
		return nil
	}
	return cfg.Account.Consent(cfg.Token, &policy, accepted)
}
