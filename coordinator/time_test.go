package coordinator

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/internal/socket"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// bubble runs a coordinator for n players inside a synctest bubble. play is
// called with the players enrolled and Run under way; it returns when the test
// has seen enough, and cancels Run.
func bubble(t *testing.T, job Job, n int, play func(ctx context.Context, tb *table)) (runErr error) {
	t.Helper()
	return bubbleIn(t, t.TempDir(), tinyBase(t), job, n, play)
}

// bubbleIn is bubble over the state that dir holds.
func bubbleIn(t *testing.T, dir string, base *model.Base, job Job, n int, play func(ctx context.Context, tb *table)) (runErr error) {
	t.Helper()
	return bubbleWith(t, Config{Job: job, Dir: dir, Base: base}, n, play)
}

// bubbleWith is bubble for a configuration.
func bubbleWith(t *testing.T, cfg Config, n int, play func(ctx context.Context, tb *table)) (runErr error) {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Base == nil {
		cfg.Base = tinyBase(t)
	}
	// The compressor's pool is made at its first use, and must not belong to a bubble.
	full, _, err := quant.PackUpdate([]float32{1}, nil, "f32", "zstd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quant.UnpackUpdate(full, nil, 1); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tb := &table{t: t}
		var err error
		cfg.Hosts, cfg.Progress = []string{}, func(p monitor.Status) {
			tb.mu.Lock()
			tb.seen = append(tb.seen, p)
			tb.mu.Unlock()
		}
		tb.c, err = New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		tb.c.paused = true // for moving by noise alone: most players send zeros
		wires := pipes.New()
		tb.client = wires.Client()
		srv := &http.Server{Handler: handler(tb.c)}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(wires) }()
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- tb.c.Run(ctx) }()
		if tb.token, err = wire.ParseToken(tb.c.Token("http://coordinator.test", nil)); err != nil {
			t.Fatal(err)
		}
		for range n {
			p := newPlayer(t, tb.token)
			p.http = wires.Client()
			tb.players = append(tb.players, p)
			if err := p.dial(ctx); err != nil {
				t.Fatal(err)
			}
		}
		play(ctx, tb)
		cancel()
		tb.allEnd(func() { runErr = <-ran })
		for _, p := range tb.players {
			p.conn.CloseNow()
		}
		if err := errors.Join(tb.c.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
		tb.allEnd(func() { <-served })
	})
	return runErr
}

// aDay is longer than anything that a bubble's test is about. Coordinators ping
// for ever, so that a bubble never finds itself deadlocked.
const aDay = 24 * time.Hour

// allEnd bounds a wait of a bubble.
func (tb *table) allEnd(wait func()) {
	tb.t.Helper()
	watchdog.Within(tb.t, aDay, "the end", wait, tb.sides()...)
}

// progressOf returns the first progress in a state after index from.
func (tb *table) progressOf(state string, from int) (monitor.Status, int, bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for i := from; i < len(tb.seen); i++ {
		if tb.seen[i].State == state {
			return tb.seen[i], i, true
		}
	}
	return monitor.Status{}, 0, false
}

// TestMuteDevices: devices that take their assignment and say nothing hold the
// round open for exactly the deadline of turn 1, and it costs nothing.
func TestMuteDevices(t *testing.T) {
	job := tinyJob(4)
	job.Deadlines.Key = 17 * time.Second
	job.Cohort.MaxAbandoned = 1
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		for _, p := range tb.players {
			go func() {
				for {
					if _, err := p.receive(ctx); err != nil {
						return
					}
				}
			}()
		}
		time.Sleep(time.Minute)
		keying, _, ok := tb.progressOf("keying", 0)
		over, _, ok2 := tb.progressOf(monitor.StateAbandoned, 0)
		if !ok || !ok2 || over.Elapsed-keying.Elapsed != job.Deadlines.Key {
			t.Errorf("keying from %v, abandoned at %v", keying.Elapsed, over.Elapsed)
		}
		if tb.c.Result().Rounds != 0 || tb.c.Status().State != monitor.StateFinished {
			t.Errorf("status %+v", tb.c.Status())
		}
	})
	if !errors.Is(err, ErrAbandoned) {
		t.Errorf("Run ended with %v", err)
	}
}

// TestOneMuteDevice: one device that stops after a turn delays each later state
// by nothing, and its own by the deadline at most.
func TestOneMuteDevice(t *testing.T) {
	job := loud(4, 1)
	job.Deadlines.Collect = 40 * time.Second
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		tb.players[3].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn >= 3 {
				return nil, false // it trains for ever
			}
			return m, false
		}
		var wg sync.WaitGroup
		for _, p := range tb.players {
			p.delta = fixedDelta(0.05)
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait) // Finished reaches all of them
		collecting, i, _ := tb.progressOf("collecting", 0)
		confirming, _, _ := tb.progressOf("confirming", i)
		committed, _, ok := tb.progressOf(monitor.StateCommitted, i)
		if !ok || confirming.Elapsed-collecting.Elapsed != job.Deadlines.Collect || committed.Elapsed != confirming.Elapsed {
			t.Errorf("collecting at %v, confirming at %v, committed at %v", collecting.Elapsed, confirming.Elapsed, committed.Elapsed)
		}
		if got := tb.c.Result(); got.Rounds != 1 || got.Dropped != 1 {
			t.Errorf("result %+v", got)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestWhoBreaksTheProtocolIsAway: a device that is told why its session ends, and reads no farewell, holds its round for as
// long as it may come back, not for what a farewell may take besides.
func TestWhoBreaksTheProtocolIsAway(t *testing.T) {
	job := loud(4, 1)
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		tb.players[3].before = func(p *player, turn int, _ wire.Message) (wire.Message, bool) {
			if err := p.send(ctx, &wire.Enrol{}); err != nil {
				t.Error(err)
			}
			<-ctx.Done() // it reads no more
			return nil, false
		}
		var wg sync.WaitGroup
		for i, p := range tb.players {
			p.delta = fixedDelta(0.05)
			if i < 3 {
				wg.Go(func() { _ = p.play(ctx) })
			} else {
				go func() { _ = p.play(ctx) }()
			}
		}
		tb.allEnd(wg.Wait)
		keying, i, _ := tb.progressOf("keying", 0)
		sharing, _, ok := tb.progressOf("sharing", i)
		if !ok || sharing.Elapsed-keying.Elapsed > job.Deadlines.Reconnect {
			t.Errorf("keying at %v, sharing at %v: want %v at most", keying.Elapsed, sharing.Elapsed, job.Deadlines.Reconnect)
		}
		if got := tb.c.Result(); got.Rounds != 1 || got.Dropped != 1 {
			t.Errorf("result %+v", got)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestSlowReader: a device that does not read is cut off by the write timeout,
// and by a full queue, and never delays the others.
func TestSlowReader(t *testing.T) {
	job := loud(5, 1)
	job.Deadlines.Reconnect = time.Second
	err := bubble(t, job, 5, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for _, p := range tb.players[1:] {
			wg.Go(func() { _ = p.play(ctx) })
		}
		// Player 0 never reads: over a pipe not one byte of its assignment leaves.
		tb.allEnd(wg.Wait)
		if got := tb.c.Result(); got.Rounds != 1 || got.Dropped != 1 {
			t.Errorf("result %+v", got)
		}
		time.Sleep(socket.MostWrite + 10*time.Second)
		synctest.Wait()
		if _, err := tb.players[0].receive(ctx); err == nil {
			t.Error("the connection of the device that does not read lives on")
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestSilentPeers: a connection that never says hello is closed by the handshake
// timeout, one that answers no ping within ping interval and timeout.
func TestSilentPeers(t *testing.T) {
	job := tinyJob(9) // two of nine come: no round begins
	err := bubble(t, job, 2, func(ctx context.Context, tb *table) {
		mute := newPlayer(t, tb.token)
		mute.http = tb.players[0].http
		conn, _, err := websocket.Dial(ctx, mute.token.Endpoint(), &websocket.DialOptions{HTTPClient: mute.http})
		if err != nil {
			t.Fatal(err)
		}
		mute.conn = conn
		go func() { // player 0 reads, and so answers pings
			for {
				if _, err := tb.players[0].receive(ctx); err != nil {
					return
				}
			}
		}()
		start := time.Now()
		if _, err := mute.receive(ctx); err == nil || time.Since(start) != handshakeTimeout {
			t.Errorf("no hello: %v after %v", err, time.Since(start))
		}
		conn.CloseNow()
		if n := tb.c.Status().Connected; n != 2 {
			t.Errorf("%d connected before the first ping", n)
		}
		time.Sleep(link.PingEvery + link.PingTimeout)
		synctest.Wait()
		if n := tb.c.Status().Connected; n != 1 {
			t.Errorf("%d connected after the ping's timeout", n)
		}
		time.Sleep(time.Hour)
		if n := tb.c.Status().Connected; n != 1 {
			t.Errorf("%d connected an hour later: the one that answers pings was cut off", n)
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
}

// TestPingsComeTogether: connections of any age are pinged at the same moments, none
// before it was silent for link.PingEvery.
func TestPingsComeTogether(t *testing.T) {
	job := tinyJob(9)
	err := bubble(t, job, 1, func(ctx context.Context, tb *table) {
		pings := map[time.Time]int{}
		for range 5 {
			time.Sleep(130 * time.Millisecond)
			p := newPlayer(t, tb.token)
			p.http = tb.client
			var last time.Time
			p.pinged = func() {
				now := time.Now()
				if now.Sub(last) < link.PingEvery || now.Sub(last) > link.PingEvery+link.PingsTogether {
					t.Errorf("a ping %v after the one before", now.Sub(last))
				}
				last = now
				tb.mu.Lock()
				defer tb.mu.Unlock()
				pings[now]++
			}
			if err := p.dial(ctx); err != nil {
				t.Fatal(err)
			}
			last = time.Now()
			go func() {
				for {
					if _, err := p.receive(ctx); err != nil {
						return
					}
				}
			}()
		}
		time.Sleep(10 * (link.PingEvery + link.PingsTogether))
		synctest.Wait()
		tb.mu.Lock()
		defer tb.mu.Unlock()
		if len(pings) < 10 {
			t.Errorf("%d moments", len(pings))
		}
		for at, n := range pings {
			if n != 5 {
				t.Errorf("%d of 5 connections were pinged at %v", n, at)
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
}

// TestLateJoiners: a device that enrols while a round runs is told to wait, and
// is in the next one; the running round's cohort does not grow.
func TestLateJoiners(t *testing.T) {
	job := loud(3, 2)
	err := bubble(t, job, 3, func(ctx context.Context, tb *table) {
		late := newPlayer(t, tb.token)
		late.http = tb.players[0].http
		var wg sync.WaitGroup
		joined := make(chan struct{})
		tb.players[0].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn == 3 {
				select {
				case <-joined:
				case <-ctx.Done():
				}
			}
			return m, false
		}
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		time.Sleep(time.Millisecond)
		if err := late.dial(ctx); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = late.play(ctx) })
		synctest.Wait()
		late.mu.Lock()
		if late.waits != 1 || len(late.plans) != 0 {
			t.Errorf("the late device was told to wait %d times and got %d plans", late.waits, len(late.plans))
		}
		late.mu.Unlock()
		close(joined)
		tb.allEnd(wg.Wait)
		late.conn.CloseNow()
		if len(late.plans) != 1 || late.plans[0].Version != 1 || tb.c.Result().Rounds != 2 {
			t.Errorf("the late device got %d plans", len(late.plans))
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestGoneDevicesAreNotAwaited: a device whose connection broke and that nobody
// works beside is waited for for a twentieth of Reconnect, and not again in the
// next round.
func TestGoneDevicesAreNotAwaited(t *testing.T) {
	job := loud(4, 2)
	job.Deadlines.Gather, job.Deadlines.Reconnect = time.Hour, 7*time.Second
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		tb.players[2].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) { return m, turn == 3 }
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		_, i, _ := tb.progressOf(monitor.StateCommitted, 0)
		committed, _, ok := tb.progressOf(monitor.StateCommitted, i+1)
		if !ok || committed.Elapsed != job.Deadlines.Reconnect/20 {
			t.Errorf("both rounds took %v, want the one wait of %v", committed.Elapsed, job.Deadlines.Reconnect/20)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
