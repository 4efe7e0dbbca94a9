package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// copyFolder takes an image of a store as the operating system holds it: what a
// killed process leaves behind.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(from, FileName+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "-shm") {
			continue // rebuilt from the log
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCrashAtEveryPoint plays rounds of every kind, takes an image of the files
// at every point between two statements, and opens each image: the ledger must
// verify, hold all that was acknowledged before the image, charge a round whose
// intent was acknowledged, and hold at most the one transaction under way.
func TestCrashAtEveryPoint(t *testing.T) {
	dir, images := folder(t), t.TempDir()
	type image struct {
		dir, point string
		charged    int // entries acknowledged
		committed  uint64
		intent     uint64 // round with an acknowledged intent and no acknowledged entry
		nextMin    uint64
	}
	var taken []image
	var acked image
	opt := options()
	armed := false
	opt.fault = func(point string) {
		if !armed {
			return
		}
		im := acked
		im.point = point
		im.dir = filepath.Join(images, strconv.Itoa(len(taken)))
		copyFolder(t, dir, im.dir)
		taken = append(taken, im)
	}
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	armed = true
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, kind := range []dp.Kind{dp.KindRelease, dp.KindCharged, dp.KindNoiseOnly, 0, dp.KindRelease} {
		id := begin(t, s, acked.committed)
		acked.nextMin = id + 1
		check(s.Journal(id, "keying", ""))
		if kind == 0 {
			check(s.Abandon(id, "too few"))
			continue
		}
		check(s.PersistSurvivors(id, map[int][]byte{0: {byte(i)}}))
		check(s.PersistIntent(event(id, dp.KindRelease)))
		acked.intent = id
		if kind == dp.KindCharged {
			check(errOf(s.Charge(event(id, dp.KindCharged), Note{Reason: "alarm"})))
		} else {
			check(errOf(s.Commit(event(id, kind), note(id), Checkpoint{Version: acked.committed + 1, Round: id, Adapter: []byte{1}, Kept: leaves(acked.committed+1, 1, 2)})))
			acked.committed++
		}
		acked.charged++
		acked.intent = 0
	}
	armed = false
	if len(taken) < 40 {
		t.Fatalf("only %d images", len(taken))
	}
	for i, im := range taken {
		s, err := Open(im.dir, options())
		if err != nil {
			t.Fatalf("image %d (%s): %v", i, im.point, err)
		}
		l, err := s.Ledger()
		check(err)
		last, err := s.Last()
		check(err)
		var version uint64
		if last != nil {
			version = last.Version
		}
		n := len(l.Entries)
		// "before commit" and earlier points must not show the transaction;
		// "after commit" is the moment before it is acknowledged.
		switch {
		case im.intent != 0 && n != im.charged+1:
			t.Errorf("image %d (%s): intent of round %d, %d entries, %d acknowledged", i, im.point, im.intent, n, im.charged)
		case im.intent == 0 && im.point != "after commit" && n != im.charged:
			t.Errorf("image %d (%s): %d entries, %d acknowledged", i, im.point, n, im.charged)
		case n < im.charged || n > im.charged+1:
			t.Errorf("image %d (%s): %d entries, %d acknowledged", i, im.point, n, im.charged)
		}
		if version < im.committed || version > im.committed+1 || version == im.committed+1 && im.point != "after commit" {
			t.Errorf("image %d (%s): checkpoint %d, %d acknowledged", i, im.point, version, im.committed)
		}
		keeps(t, s, version, 1, 2) // as of the checkpoint, whatever was under way
		if id := begin(t, s, version); id < im.nextMin {
			t.Errorf("image %d (%s): round number %d given again", i, im.point, id)
		}
		check(s.Close())
		// Opening twice settles nothing twice.
		s = open(t, im.dir)
		if l2, err := s.Ledger(); err != nil || len(l2.Entries) != n {
			t.Errorf("image %d (%s): %d entries at the second start, %v", i, im.point, len(l2.Entries), err)
		}
		check(s.Close())
	}
}

const childDir = "STARLING_STORE_CRASH_DIR"

// TestMain turns the test binary into the victim of TestKill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		victim(dir)
		return
	}
	os.Exit(both(m))
}

// victim commits rounds for ever and prints what is acknowledged.
func victim(dir string) {
	s, err := Open(dir, options())
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	last, err := s.Last()
	var version uint64
	if last != nil {
		version = last.Version
	}
	for err == nil {
		var id uint64
		if id, err = s.BeginRound(Round{Version: version, Rank: 1, Certificate: cert}); err != nil {
			break
		}
		if err = s.PersistIntent(event(id, dp.KindRelease)); err != nil {
			break
		}
		fmt.Println("intent", id)
		version++
		if _, err = s.Commit(event(id, dp.KindRelease), note(id), Checkpoint{Version: version, Round: id, Adapter: make([]byte, 20_000)}); err != nil {
			break
		}
		fmt.Println("committed", version)
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// TestKill kills a real process with SIGKILL at arbitrary moments.
func TestKill(t *testing.T) {
	dir := folder(t)
	var entries int
	for run := range 6 {
		cmd := exec.CommandContext(watchdog.Context(t), os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var intent, committed uint64
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			what, arg, _ := strings.Cut(lines.Text(), " ")
			v, _ := strconv.ParseUint(arg, 10, 64)
			switch what {
			case "intent":
				intent = v
			case "committed":
				committed = v
			default:
				t.Errorf("run %d: %s", run, lines.Text())
			}
			if n == 5+3*run {
				time.Sleep(time.Duration(run*700) * time.Microsecond)
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
			t.Log(err)
		}
		watchdog.Wait(t, "the killed process", func() { cmd.Wait() })
		s := open(t, dir)
		l, err := s.Ledger()
		if err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		last, err := s.Last()
		if err != nil || last == nil || last.Version < committed || last.Version > committed+1 {
			t.Fatalf("run %d: last checkpoint %+v, acknowledged %d, %v", run, last, committed, err)
		}
		if len(l.Entries) <= entries {
			t.Errorf("run %d: the ledger did not grow", run)
		}
		entries = len(l.Entries)
		if e := l.Entries[entries-1]; e.Event.Round < intent {
			t.Errorf("run %d: intent of round %d is not charged, last entry %+v", run, intent, e)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
