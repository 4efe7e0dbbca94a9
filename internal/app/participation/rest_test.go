package participation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/edge"
)

// day is a laptop's: it is unplugged in the middle of a round, finishes it, rests, is plugged in and goes on.
func TestRestsBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		battery := func() bool {
			at := time.Since(begin)
			return at < 5*time.Minute || at > 20*time.Minute && at < 60*time.Minute
		}
		var said bytes.Buffer
		var came, went []time.Duration
		r := resting{told: &said, every: looks, most: mostFinishing, rests: func() (string, error) {
			if battery() {
				return "on battery", nil
			}
			return "", nil
		}}
		r.join = func(ctx context.Context, p *Part) error {
			came = append(came, time.Since(begin))
			up := int64(0)
			for round := uint64(1); ; round++ { // of four minutes, a minute apart
				for _, e := range []edge.State{edge.Waiting, edge.Keying, edge.Training, edge.Uploading, edge.Committed} {
					up += 10
					event := edge.Event{State: e, Round: round, Up: up}
					p.Report.count(event)
					p.seen(event)
					select {
					case <-ctx.Done():
						went = append(went, time.Since(begin))
						if e != edge.Waiting && e != edge.Committed {
							t.Errorf("left while %s", e)
						}
						return p.Report.ended(ctx, ctx.Err(), "")
					case <-time.After(time.Minute):
					}
					if p.Report.RoundsCommitted == 8 {
						return nil
					}
				}
			}
		}
		part := &Part{}
		if err := r.run(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if len(came) != 2 || came[0] < 5*time.Minute || came[0] > 6*time.Minute || came[1] < 60*time.Minute || came[1] > 61*time.Minute {
			t.Errorf("came at %v", came)
		}
		if len(went) != 1 || went[0] < 20*time.Minute || went[0] > 26*time.Minute {
			t.Errorf("went at %v", went)
		}
		if part.Report.RoundsCommitted != 8 || part.Report.Interrupted || part.Report.Sent != int64(10*(8*5+1)) {
			t.Errorf("report %+v", part.Report)
		}
		if got, want := said.String(), "resting: on battery\nresting: on battery\n"; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}

// A round that does not end within mostFinishing does not keep a device on battery; a signal ends the rest; and a
// machine that does not tell its power is not trained on.
func TestRestsAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, left := time.Now(), time.Duration(0)
		ctx, stop := context.WithCancel(t.Context())
		why := ""
		r := resting{told: io.Discard, every: looks, most: mostFinishing, rests: func() (string, error) { return why, nil }}
		r.join = func(ctx context.Context, p *Part) error {
			p.seen(edge.Event{State: edge.Training})
			why = "on battery"
			<-ctx.Done()
			left = time.Since(begin)
			time.AfterFunc(time.Hour, stop)
			return ctx.Err()
		}
		p := &Part{}
		if err := r.run(ctx, p); err == nil || !p.Report.Interrupted {
			t.Errorf("%v, %+v", err, p.Report)
		}
		if left < mostFinishing || left > mostFinishing+2*looks {
			t.Errorf("left after %v", left)
		}
		// A job that is over just when the device has to rest is not joined again.
		why = ""
		joins := 0
		r.join = func(ctx context.Context, _ *Part) error {
			joins++
			why = "on battery"
			<-ctx.Done()
			return nil
		}
		if err := r.run(t.Context(), &Part{}); err != nil || joins != 1 {
			t.Errorf("%v after %d joins", err, joins)
		}
		broken := errors.New("no such file")
		r.rests = func() (string, error) { return "", broken }
		if err := r.run(t.Context(), &Part{}); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}
