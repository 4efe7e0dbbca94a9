package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// tinyJob is a job for n players that trains nothing in particular.
func tinyJob(n int) Job {
	j := job.Default()
	j.Server.Optimizer = "fedavg" // the mean itself, which the tests compute by hand
	j.Name, j.Labels, j.Rounds = "tiny", []string{"a", "b"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 3, Alpha: 4, Sequence: 8}
	j.Privacy.ClipNorm = 1
	j.Cohort.Population, j.Cohort.Floor = n, min(n, 3)
	j.Shard = job.Shard{Size: 64, Floor: 3}
	j.Deadlines = job.Deadlines{
		Gather: time.Minute, Key: time.Minute, Share: time.Minute, Collect: time.Minute,
		Confirm: time.Minute, Unmask: time.Minute, Reconnect: 500 * time.Millisecond,
	}
	return j
}

// table is a coordinator under test with its players.
type table struct {
	t       *testing.T
	c       *Coordinator
	server  *httptest.Server
	token   wire.Token
	client  *http.Client // of a bubble
	players []*player
	wg      sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc // ends run
	errs    []error
	// reconnects: players whose connection broke come back at once.
	reconnects bool
	onProgress func(monitor.Status)

	mu   sync.Mutex
	seen []monitor.Status
}

func setTable(t *testing.T, cfg Config, players int, bend func(i int, p *player)) *table {
	t.Helper()
	tb := &table{t: t}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Base == nil {
		cfg.Base = tinyBase(t)
	}
	if cfg.Hosts == nil {
		cfg.Hosts = []string{} // players do not train
	}
	cfg.Progress = func(p monitor.Status) {
		tb.mu.Lock()
		tb.seen = append(tb.seen, p)
		tb.mu.Unlock()
		if tb.onProgress != nil {
			tb.onProgress(p)
		}
	}
	var err error
	if tb.c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	tb.c.paused = true // for moving by noise alone: most players send zeros
	tb.server = httptest.NewServer(handler(tb.c))
	if tb.token, err = wire.ParseToken(tb.c.Token(tb.server.URL, nil)); err != nil {
		t.Fatal(err)
	}
	for i := range players {
		p := newPlayer(t, tb.token)
		if bend != nil {
			bend(i, p)
		}
		tb.players = append(tb.players, p)
	}
	return tb
}

// sides are the coordinator and its players.
func (tb *table) sides() []watchdog.Side {
	return []watchdog.Side{
		func() string { return fmt.Sprintf("coordinator: %+v", tb.c.Status()) },
		func() string {
			var b strings.Builder
			for i, p := range tb.players {
				p.mu.Lock()
				fmt.Fprintf(&b, "player %d: %d plans, outcomes %v, %d waits, errors %v; ", i, len(p.plans), p.outcomes, p.waits, p.errs)
				p.mu.Unlock()
			}
			return b.String()
		},
	}
}

// played waits for all players to have ended.
func (tb *table) played() {
	tb.t.Helper()
	watchdog.Wait(tb.t, "the players' end", tb.wg.Wait, tb.sides()...)
}

// run plays until the job is over, at most two minutes.
func (tb *table) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	tb.ctx, tb.stop = ctx, cancel
	tb.errs = make([]error, len(tb.players))
	for i, p := range tb.players {
		tb.wg.Go(func() {
			for {
				tb.errs[i] = p.run(ctx)
				if !tb.reconnects || !errors.Is(tb.errs[i], errHungUp) {
					return
				}
			}
		})
	}
	var err error
	watchdog.Wait(tb.t, "the job's end", func() { err = tb.c.Run(ctx) }, tb.sides()...)
	tb.c.Wait(ctx)
	cancel()
	tb.played()
	tb.server.Close()
	return errors.Join(err, tb.c.Close())
}

// TestRounds plays whole rounds over sockets: what is released is the mean of
// what was sent, plus noise as large as the ledger says.
func TestRounds(t *testing.T) {
	const n = 6
	job := tinyJob(n)
	job.Rounds = 3
	job.Adapter.RankMin = 3
	job.Privacy.NoiseMultiplier = 1e-3 // nearly none, so that the mean shows
	job.Privacy.Epsilon = 1e12
	cfg := Config{Job: job, Dir: t.TempDir()}
	var first []float32
	tb := setTable(t, cfg, n, func(i int, p *player) {
		p.delta = func(d int) []float32 {
			x := make([]float32, d)
			for k := range x {
				x[k] = 0.01 * float32(k%5)
			}
			return x
		}
	})
	first = tb.c.core.Adapter().Slice(3)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	res := tb.c.Result()
	if res.Rounds != 3 || res.Dropped != 0 || res.Abandoned != 0 {
		t.Errorf("result %+v", res)
	}
	got := res.Adapter.Slice(3)
	var worst float64
	for k := range got {
		want := first[k] + 3*0.01*float32(k%5)
		worst = max(worst, math.Abs(float64(got[k]-want)))
	}
	// A grid step is about L*S/(Q*sqrt(D)) = 2.6/(12*sqrt(128)) = 0.02; rounding
	// errors of 6 devices and 3 rounds average to about a fifth of it.
	if worst > 0.05 || worst == 0 {
		t.Errorf("the released adapter is off by %v", worst)
	}
	for i, p := range tb.players {
		if tb.errs[i] != nil || p.finished == nil || p.finished.Version != 3 || len(p.outcomes) != 3 {
			t.Errorf("player %d: %v, finished %+v, outcomes %v", i, tb.errs[i], p.finished, p.outcomes)
		}
	}
	if l, err := store.ReadLedger(cfg.Dir); err != nil || len(l.Entries) != 3 || !l.Private {
		t.Errorf("ledger %+v, %v", l, err)
	}
	if res.BytesUp < 3*n*100 || res.BytesDown < 3*n*100 || res.BytesUpPerDeviceRound == 0 {
		t.Errorf("bytes %d up, %d down", res.BytesUp, res.BytesDown)
	}
}
