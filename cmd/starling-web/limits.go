//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"syscall/js"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web/client"
)

// limits judges the job at an address before anybody joins: nobody enrols, and nothing is sent.
func limits(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeObject {
			return nil, errors.New("limits takes an object of options")
		}
		options := args[0]
		cfg := edge.Config{TrustLocal: options.Get("trustLocal").Truthy()}
		var err error
		if cfg.Token, err = token(text(options.Get("token")), text(options.Get("url"))); err != nil {
			return nil, err
		}
		if cfg.Account, err = edge.NewAccount(octets(options.Get("account")), nil); err != nil {
			return nil, err
		}
		examples := 0
		if n := options.Get("examples"); n.Type() == js.TypeNumber {
			examples = n.Int()
		}
		v, err := edge.AskLimits(context.Background(), cfg, examples)
		if err != nil {
			return nil, err
		}
		l := client.Limits{Beyond: []client.Limit{}, Granted: v.Granted}
		for _, beyond := range v.Beyond {
			l.Beyond = append(l.Beyond, client.Limit(beyond))
		}
		if !math.IsInf(v.Shown.Example, 1) {
			l.ExampleBits, l.Bits = v.Shown.Example, v.Shown.Data
		}
		b, err := json.Marshal(l)
		return string(b), err
	})
}
