package coordinator

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
)

const victimDir = "STARLING_COORDINATOR_CRASH_DIR"

// TestMain turns the test binary into the coordinator that TestKill kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// crashJob is the same in the victim and in the test.
func crashJob() Job {
	j := loud(4, 6)
	// Nobody hangs up, so that nobody is waited for in vain: a device that connected
	// and has not come to say that it is ready, on a busy machine, must not be missing
	// in a round of which the test knows the sum.
	j.Deadlines.Reconnect = time.Minute
	return j
}

// TestCrashInEveryState copies the folder as a killed process would leave it,
// in every state of a round, starts again on each copy, and plays to the end:
// the ledger verifies, a round whose unmasking had begun is charged, no number
// is given twice, no round is released twice, and the adapter is that of the
// committed rounds alone.
func TestCrashInEveryState(t *testing.T) {
	const n, v = 4, 0.02
	job := crashJob()
	job.Rounds = 2
	base, dir, images := tinyBase(t), t.TempDir(), t.TempDir()
	type image struct {
		dir     string
		p       monitor.Status
		version uint64
		entries int
	}
	var taken []image
	var c *Coordinator
	cfg := Config{Job: job, Dir: dir, Base: base}
	tb := setTable(t, cfg, n, func(_ int, p *player) { p.delta = fixedDelta(v) })
	c = tb.c
	tb.onProgress = func(p monitor.Status) {
		if p.State == monitor.StateWaiting || p.State == monitor.StateFinished {
			return
		}
		im := image{filepath.Join(images, fmt.Sprint(len(taken))), p, c.core.Version(), len(c.spent)}
		copyStore(t, dir, im.dir)
		taken = append(taken, im)
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	states := map[string]bool{}
	for _, im := range taken {
		states[im.p.State] = true
		l, err := store.ReadLedger(im.dir)
		if err != nil || len(l.Entries) != im.entries {
			t.Fatalf("%s of round %d: %d entries, want %d; %v", im.p.State, im.p.Round, len(l.Entries), im.entries, err)
		}
		keys := tb.players
		tb := setTable(t, Config{Job: job, Dir: im.dir, Base: base}, n, func(i int, p *player) {
			p.delta, p.key = fixedDelta(v), keys[i].key
		})
		if im.version > 0 {
			ck, err := model.ReadCheckpoint(tb.c.checkpointDir())
			if err != nil || ck.Version != int(im.version) {
				t.Errorf("%s: the exported checkpoint is of round %d, version %d is committed; %v", im.p.State, ck.Version, im.version, err)
			}
		}
		begun := im.p.State == "unmasking" || im.p.State == "releasing"
		want := im.entries
		if begun {
			want++
		}
		if got := len(tb.c.spent); got != want {
			t.Errorf("%s: %d entries after the restart, want %d", im.p.State, got, want)
		} else if begun && tb.c.spent[got-1].Kind != dp.KindCharged {
			t.Errorf("%s: the round was not charged: %+v", im.p.State, tb.c.spent[got-1])
		}
		if tb.c.core.Version() != im.version || tb.c.core.NextRound() <= im.p.Round {
			t.Errorf("%s: goes on at version %d, round %d; was at %d, %d", im.p.State, tb.c.core.Version(), tb.c.core.NextRound(), im.version, im.p.Round)
		}
		if err := tb.run(); err != nil {
			t.Fatalf("%s: %v", im.p.State, err)
		}
		l, err = store.ReadLedger(im.dir)
		if err != nil || len(l.Entries) != want+job.Rounds-int(im.version) {
			t.Errorf("%s: %d entries at the end, %v", im.p.State, len(l.Entries), err)
		}
		if got := moved(tb); math.Abs(got-v*float64(job.Rounds)) > 0.0049 { // five; a missing update is 0.005
			t.Errorf("%s: moved by %v, want %v", im.p.State, got, v*float64(job.Rounds))
		}
	}
	for _, s := range []string{"gathering", "keying", "sharing", "collecting", "confirming", "unmasking", "releasing", "committed"} {
		if !states[s] {
			t.Errorf("no image in state %s", s)
		}
	}
}

// copyStore copies the database as the operating system holds it.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(from, store.FileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, store.FileName+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// victim runs the job and prints each state.
func victim(dir string) {
	t := &testing.T{}
	c, err := New(Config{Job: crashJob(), Dir: dir, Base: tinyBase(t), Hosts: []string{}, Progress: func(p monitor.Status) {
		fmt.Println("state", p.State, p.Round)
	}})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("url", httptest.NewServer(handler(c)).URL)
	fmt.Println("error", c.Run(context.Background()))
	os.Exit(0)
}

// TestKill kills a real coordinator with SIGKILL, between rounds and in the
// middle of one, and starts it again until the job is done.
func TestKill(t *testing.T) {
	const n, v = 4, 0.05
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var committed, charged int
	keys := make([]ed25519.PrivateKey, n)
	for i := range keys {
		keys[i] = newPlayer(t, wire.Token{}).key
	}
	for run, killAt := range []string{"state committed", "state confirming", "state unmasking", "never"} {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		stop := func() {}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line := lines.Text()
			if url, ok := strings.CutPrefix(line, "url "); ok {
				stop = crew(t, ctx, url, keys, v, done)
			}
			if strings.HasPrefix(line, "error") && line != "error <nil>" {
				t.Errorf("run %d: %s", run, line)
			}
			if strings.HasPrefix(line, killAt) {
				if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		watchdog.Wait(t, "the killed coordinator", func() { cmd.Wait() })
		stop()
		watchdog.Recv(t, "the fleet's end", done)
		l, err := store.ReadLedger(dir)
		if err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		before := committed + charged
		committed, charged = 0, 0
		seen := map[uint64]bool{}
		for _, e := range l.Entries {
			if seen[e.Event.Round] {
				t.Errorf("run %d: round %d stands twice in the ledger", run, e.Event.Round)
			}
			seen[e.Event.Round] = true
			if e.Event.Kind == dp.KindCharged {
				charged++
			} else {
				committed++
			}
		}
		if committed+charged < before {
			t.Errorf("run %d: the ledger shrank", run)
		}
	}
	// Killed at unmasking: that round may have got as far as its commit before the
	// signal came; else the next start charged it.
	if committed != crashJob().Rounds || charged > 1 {
		t.Errorf("%d committed, %d charged", committed, charged)
	}
	ck, err := model.ReadCheckpoint(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	mean := movedOf(ck.Adapter)
	if want := v * float64(committed); math.Abs(mean-want) > 0.009 { // six standard deviations; a missing update is 0.0125
		t.Errorf("the adapter moved by %v, want %v", mean, want)
	}
}

// crew plays devices against a coordinator until stop is called.
func crew(t *testing.T, ctx context.Context, url string, keys []ed25519.PrivateKey, v float32, done chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	tb := &table{t: t, ctx: ctx}
	tb.token.URL = url
	for _, key := range keys {
		p := newPlayer(t, tb.token)
		p.delta, p.key = fixedDelta(v), key
		tb.wg.Go(func() { _ = p.run(ctx) }) // it ends when the coordinator is killed
	}
	go func() {
		defer close(done)
		tb.wg.Wait()
		cancel()
	}()
	return cancel
}
