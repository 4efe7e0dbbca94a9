package coordinator

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// A job whose devices all send zeros is paused after some rounds and not at its budget's end; the
// operator who resumes it is not asked again. One whose devices train is not.
func TestJobThatNeverMovesIsPaused(t *testing.T) {
	const n, rounds = 4, 8
	for _, trains := range []bool{false, true} {
		dir := t.TempDir()
		resumed := false
		tb := setTable(t, Config{Job: loud(n, rounds), Dir: dir}, n, func(_ int, p *player) {
			if trains {
				p.delta = fixedDelta(0.05)
			}
		})
		tb.c.paused = false
		tb.onProgress = func(s monitor.Status) {
			if s.State != monitor.StateWaiting || !strings.Contains(s.Reason, "paused by the coordinator: the adapter has moved by noise alone for 3 rounds") || resumed {
				return
			}
			resumed = true
			if s.Version != 3 {
				t.Errorf("paused after %d rounds", s.Version)
			}
			f, err := tb.c.Fleet()
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(f.Resume(), f.Close()); err != nil {
				t.Error(err)
			}
			tb.c.Wake()
		}
		if err := tb.run(); err != nil {
			t.Fatal(err)
		}
		if resumed == trains || tb.c.Result().Rounds != rounds {
			t.Errorf("trains %t: paused %t, %d rounds", trains, resumed, tb.c.Result().Rounds)
		}
	}
}
