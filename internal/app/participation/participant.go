// Package participation takes part in jobs for a device's owner: in some, or in those that a fleet's coordinator lists. It
// asks the owner what only they may accept, and shows what the device does.
package participation

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/edge/leak"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/bench"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
)

// Participant is a device's owner with one data set.
type Participant struct {
	Streams  *terminal.Streams
	Agent    string // what coordinators are told of this program
	Set      *dataset.Set
	Kept     *accounts.Folder
	Account  *edge.Account // of Set
	Identity string        // file of Key, for words
	Key      ed25519.PrivateKey
	Cache    string // folder
	Trainer  edge.Trainer
	Cores    int
	Remake   edge.Remaker // nil: programs are not made again here
	Known    known.List
	Base     *model.Base // nil: the coordinator's
	Fetch    func(context.Context, edge.Published) (*model.Base, error)

	AskAgain   bool // what was accepted earlier is forgotten
	TrustLocal bool // the coordinators are the owner's own, on this machine
	TryLeak    bool // what an update shows is tried for the owner's own coordinator, too
	Plain      bool // a coordinator on another machine may be joined over http
	NotPrivate bool // a job that is not private may be joined

	asking sync.Mutex // one question at a time
}

// Join takes part in a job until it ends.
func (m *Participant) Join(ctx context.Context, p *Part) error {
	p.Report.Examples = len(m.Set.Examples)
	stderr := terminal.Prefixed(m.Streams.Stderr, p.Prefix)
	if p.Note != "" && !p.back {
		fmt.Fprintln(stderr, "note: "+p.Note)
	}
	if m.AskAgain && !p.back {
		if err := m.Account.Withdraw(p.Token); err != nil {
			return err
		}
	}
	if p.Found == nil && !p.back {
		printConsents(stderr, m.Account.Consents(p.Token))
	}
	var events *json.Encoder
	if m.Streams.JSON && p.Prefix == "" { // events of several jobs could not be told apart
		events = json.NewEncoder(m.Streams.Stdout)
	}
	shown := newView(stderr, events, func() uint64 { return promised(m.Account) })
	if token, err := wire.ParseToken(p.Token); err == nil {
		shown.where = token.URL
	}
	var leaks edge.Leaker
	if !m.TrustLocal || m.TryLeak {
		leaks = leaker(shown, m.Cores)
	}
	if p.back {
		fmt.Fprintln(stderr, "taking part again")
	} else {
		printAsks(ctx, stderr, edge.Config{Token: p.Token, AllowPlain: m.Plain}, http.DefaultClient)
	}
	if !p.back && !m.TrustLocal {
		printQuote(ctx, stderr, edge.Config{Token: p.Token, Policy: p.Policy, AllowPlain: m.Plain}, m.Cores, len(m.Set.Examples))
	}
	run := edge.Run
	if p.Found == nil { // else nobody was asked for this job, and nobody is there to be
		run = (&consent{to: m.Streams, settle: shown.Clear, account: m.Account, token: p.Token, policy: p.Policy, asking: &m.asking}).run
	}
	err := run(ctx, edge.Config{
		Announced: m.cards(ctx, p, shown),
		Found:     p.Found, Remake: m.Remake, Leaks: leaks, Account: m.Account, AllowPlain: m.Plain,
		Agent: m.Agent, Token: p.Token, Identity: m.Key, Data: edge.Examples(m.Set), CacheDir: m.Cache, AcceptNotPrivate: m.NotPrivate, Policy: p.Policy,
		Trainer: m.Trainer, Known: m.Known, Base: m.Base, Fetch: m.Fetch,
		Roster: func(round uint64, task [32]byte, proof *edge.RosterProof) {
			if err := m.Kept.KeepRoster(round, task, proof); err != nil {
				fmt.Fprintln(shown, "note: the shard's members could not be stored:", edge.Escape(err.Error(), false))
			}
		},
		Progress: func(e edge.Event) {
			p.Report.count(e)
			shown.Show(e)
			if p.seen != nil {
				p.seen(e)
			}
		},
	})
	shown.Clear()
	return p.Report.ended(ctx, err, m.Identity)
}

// mostTrying is how long a job may take to be tried before it is joined: anyone who chooses
// base and job chooses how long a training takes, too.
const mostTrying = 5 * time.Minute

// leaker tries a job before it is joined: with its program, made again here.
func leaker(told io.Writer, cores int) edge.Leaker {
	return func(ctx context.Context, t edge.Trial) (edge.Leak, error) {
		ctx, stop := context.WithTimeoutCause(ctx, mostTrying, fmt.Errorf("it takes more than %v", mostTrying))
		defer stop()
		b, err := bench.Announced(ctx, t)
		if err != nil {
			return edge.Leak{}, err
		}
		r, err := b.Try(ctx, told, leak.Options{}, cores)
		return leaked(ctx, r, err)
	}
}

// leaked is what trying a job came to. A report counts where the time ended, too: it says what was not tried.
func leaked(ctx context.Context, r *leak.Report, err error) (edge.Leak, error) {
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // our own words
	}
	if err != nil {
		return edge.Leak{}, err
	}
	found := edge.Leak{Line: r.Line() + " ('starling bench --job' says how, and of your own texts)"}
	if worst, ok := r.Worst(leak.Tokens); ok {
		found.Tokens = worst.Share
	}
	return found, nil
}
