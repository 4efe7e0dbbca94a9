//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"syscall/js"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/web/client"
)

// triedFor is how long a trial takes, beside what is fetched for it and its first step.
const triedFor = time.Second

// quote tries what a round of the job at an address takes in this page, on made-up examples:
// nobody enrols, and nothing of the visitor's is touched.
func quote(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeObject {
			return nil, errors.New("quote takes an object of options")
		}
		options := args[0]
		cfg, cores := edge.Config{TrustLocal: options.Get("trustLocal").Truthy()}, options.Get("cores")
		if cores.Type() != js.TypeNumber {
			return nil, errors.New("quote takes cores")
		}
		var err error
		if cfg.Token, err = token(text(options.Get("token")), text(options.Get("url"))); err != nil {
			return nil, err
		}
		q, err := edge.AskQuote(context.Background(), cfg, cores.Int(), triedFor)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(client.Quote{Step: q.Step, Start: q.Start, Memory: q.Memory})
		return string(b), err
	})
}
