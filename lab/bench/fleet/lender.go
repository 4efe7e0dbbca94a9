//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/starling-fl/starling/coordinator/relay"
)

// lend is the process of one that adds masks up.
func lend(ctx context.Context, o options) error {
	log := slog.New(slog.DiscardHandler)
	nc, err := relay.Connect(relay.Access{URL: o.nats}, "owner", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	end, err := relay.Lend(nc, log)
	if err != nil {
		return err
	}
	defer end()
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("lending")
	<-ctx.Done()
	return nil
}
