package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

func TestBackoffGrowsAndJitters(t *testing.T) {
	b := backoff{least: time.Second, most: 8 * time.Second}
	seen := map[time.Duration]bool{}
	for i, ceiling := range []time.Duration{1, 2, 4, 8, 8, 8} {
		d := b.next(0)
		if d < 0 || d > ceiling*time.Second {
			t.Errorf("wait %d is %v, at most %ds expected", i, d, ceiling)
		}
		seen[d] = true
	}
	if len(seen) < 3 { // six equal draws of so many nanoseconds do not happen
		t.Error("no jitter")
	}
	if d := b.next(time.Hour); d < time.Hour {
		t.Errorf("%v is before the time that was named", d)
	}
	b.reset()
	if d := b.next(0); d > time.Second {
		t.Errorf("%v after a reset", d)
	}
}

// dialed records when a device dials.
type dialed struct {
	at   []time.Time
	play func(p *pipe, n int)
}

func (d *dialed) dial(context.Context, string) (Conn, error) {
	d.at = append(d.at, time.Now())
	if d.play == nil {
		return nil, errors.New("connection refused")
	}
	device, coordinator := newPipe()
	go d.play(coordinator, len(d.at))
	return device, nil
}

// A device whose coordinator is gone tries again ever more rarely, but does
// not give up.
func TestReconnectBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		cfg := h.config(&constant{})
		d := &dialed{}
		cfg.Dial, cfg.BackoffMin, cfg.BackoffMax = d.dial, time.Second, time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		// Waits of at most a minute with mean half of that: about 120 in an hour.
		// Fewer than 60 is impossible, more than 240 has a chance below 2^-100.
		if n := len(d.at); n < 60 || n > 240 {
			t.Errorf("%d dials in an hour", n)
		}
	})
}

// A coordinator that accepts and then says nothing does not hold a device.
func TestSilentCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		cfg := h.config(&constant{})
		d := &dialed{play: func(*pipe, int) {}}
		cfg.Dial, cfg.Handshake = d.dial, 10*time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		if err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(d.at) != 4 {
			t.Errorf("%d dials in 35s with a limit of 10s", len(d.at))
		}
	})
}

// Pace steering: a device that was told to come back later hangs up and does,
// not before, and not all at the same instant.
func TestPaceSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		cfg := h.config(&constant{})
		d := &dialed{}
		d.play = func(p *pipe, n int) {
			h.dials <- p
			peer := h.admit(n > 1)
			if n == 1 {
				peer.send(&wire.Wait{RetryMillis: 600_000, Disconnect: true, Reason: "not drawn"})
			} else {
				peer.send(&wire.Finished{})
			}
		}
		cfg.Dial, cfg.BackoffMin, cfg.BackoffMax = d.dial, time.Second, time.Minute
		if err := Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if wait := d.at[1].Sub(d.at[0]); len(d.at) != 2 || wait < 10*time.Minute || wait > 10*time.Minute+time.Second {
			t.Errorf("%d dials, the second after %v", len(d.at), wait)
		}
	})
}

// A coordinator can make a device wait for hours, not for months.
func TestPaceIsBounded(t *testing.T) {
	p := new(paceError)
	if !errors.As(pace(1<<32-1, ""), &p) || p.wait != longestPause {
		t.Errorf("pause of %v", p.wait)
	}
}

// A round that the coordinator never ends is given up, its secrets with it.
func TestRoundThatIsNeverEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		d := h.start(h.config(&constant{value: 0.01}))
		p := h.admit(false)
		p.assign(h.plan(1))
		want[*wire.Turn](p)
		time.Sleep(longest(h.job.Deadlines) - time.Second)
		synctest.Wait()
		if _, gone := d.saw(Dropped); gone {
			t.Error("given up early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if e, gone := d.saw(Dropped); !gone || e.Round != 1 {
			t.Error("still waiting")
		}
		p.assign(h.plan(2))
		want[*wire.Turn](p)
		d.cancel()
		d.wait(t)
	})
}

// Training goes on while the connection is down, and its update is sent after
// the reconnect, only when the coordinator asks for it.
func TestTrainingOutlivesTheConnection(t *testing.T) {
	h := newHouse(t)
	gate := make(chan struct{})
	var peers []*peer
	for i := range 3 {
		tr := &constant{value: 0.02}
		if i == 1 {
			tr.gate = gate
		}
		h.start(h.config(tr))
		peers = append(peers, h.admit(false))
	}
	cut := func(turn uint8, i int) {
		if turn == 3 && i == 1 {
			peers[1].pipe.Close()
			peers[1] = h.admit(true)
			close(gate)
			peers[1].send(&wire.Resume{Round: 1, Held: 3})
		}
	}
	checkMean(t, h.round(h.plan(1), peers, cut), 0.02)
}
