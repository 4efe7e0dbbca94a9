package edge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/starling-fl/starling/model"
)

// ErrUnpromised is a program that is not the one compiled from the announced job.
var ErrUnpromised = errors.New("edge: the coordinator's program is not the one that its job says")

// BrowserTrust is what the user of a page has to know before joining: a browser has no compiler,
// and so cannot make a program again to check it.
const BrowserTrust = "In a browser you trust whoever runs this coordinator: it sends this page and the program that trains on your file. " +
	"The program can reach nothing but your examples, and what it returns is clipped, rounded and hidden in a sum of several devices; " +
	"but only the starling program on your own machine checks that it is the training that the job promises."

// A Remaker makes the program of an announced job again, from the job's name, labels and recipe and
// its base, for a rank and a host, as program.Remake does. It starts nothing that takes more than
// work, and ends with ctx. This package links no compiler, which would not fit into a browser.
type Remaker func(ctx context.Context, work float64, name string, labels []string, recipe []byte, base *model.Base, rank int, host string) ([]byte, error)

// vetted are the programs that may run on this device's data: by hash, those the
// owner named and those made again here.
type vetted struct {
	mu    sync.Mutex
	known map[[32]byte]bool // by mu
}

// vet lets a program through whose hash the owner's policy names, or that is
// what the job's recipe compiles to on this device. It is asked before the
// program is so much as parsed.
func (c *client) vet(ctx context.Context, j *job, rank int, forHost string, sum [32]byte) error {
	if c.cfg.Remake == nil && len(c.cfg.Policy.Programs) == 0 {
		return nil // a browser, a simulation, or an owner who trusts the coordinator's
	}
	c.vetted.mu.Lock()
	defer c.vetted.mu.Unlock()
	if c.vetted.known[sum] || slices.Contains(c.cfg.Policy.Programs, hex.EncodeToString(sum[:])) {
		return nil
	}
	if c.cfg.Remake == nil {
		return fmt.Errorf("%w: %x is not among the policy's programs", ErrUnpromised, sum)
	}
	base, err := c.openBase(ctx, j)
	if err != nil {
		return err
	}
	own, err := c.cfg.Remake(ctx, c.cfg.Policy.Work, j.Name, j.Labels, j.Recipe, base, rank, forHost)
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // of the round, not of the program
	}
	if err != nil {
		return fmt.Errorf("%w: it cannot be made again: %w", ErrUnpromised, err)
	}
	if sha256.Sum256(own) != sum {
		return fmt.Errorf("%w: at rank %d the job compiles to %x here, the coordinator sends %x. It runs another version of starling, or it lies: "+
			"use its version, or name the program in your policy (programs), or trust it with --trust-programs", ErrUnpromised, rank, sha256.Sum256(own), sum)
	}
	if c.vetted.known == nil {
		c.vetted.known = map[[32]byte]bool{}
	}
	c.vetted.known[sum] = true
	return nil
}
