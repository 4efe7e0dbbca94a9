package jobs_test

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// barrier holds so many who come to it until the last has, who does something meanwhile;
// anyone who comes later passes.
type barrier struct {
	n    int
	do   func()
	mu   sync.Mutex
	here int
	open chan struct{}
}

func newBarrier(n int, do func()) *barrier { return &barrier{n: n, do: do, open: make(chan struct{})} }

func (b *barrier) pass() {
	b.mu.Lock()
	b.here++
	here := b.here
	b.mu.Unlock()
	if here == b.n {
		b.do()
		close(b.open)
	}
	<-b.open
}

// between stops a job's calls of its host.
type between struct {
	coordinator.Host
	begun, ending func()
}

func (b between) Begin(round uint64, cost coordinator.Price) error {
	err := b.Host.Begin(round, cost)
	b.begun()
	return err
}

func (b between) End(round uint64, charged *coordinator.Price, again bool) error {
	b.ending()
	return b.Host.End(round, charged, again)
}

// TestKillInRoundsOfTwoJobs: the process dies while two jobs, of two pools, are each in
// a round: after it was reserved, while devices train, and after it was committed. Started
// again, every round is charged once, to both ledgers alike, and the jobs end.
func TestKillInRoundsOfTwoJobs(t *testing.T) {
	for _, at := range []string{"reserved", "training", "committed"} {
		t.Run(at, func(t *testing.T) {
			var killed string
			dir := t.TempDir()
			kill := newBarrier(2, func() { killed = copyDir(t, dir) })
			if at == "training" {
				kill.n = 6
			}
			nothing := func() {}
			b := between{begun: nothing, ending: nothing}
			train := func(context.Context, int, string) {}
			switch at {
			case "reserved":
				b.begun = kill.pass
			case "training":
				train = func(context.Context, int, string) { kill.pass() }
			case "committed":
				b.ending = kill.pass
			}
			w := openWith(t, dir, 0, func(h coordinator.Host) coordinator.Host { b := b; b.Host = h; return b })
			all := map[string]*people{"one": newPeople(t, 3), "two": newPeople(t, 3)}
			var ends []func() []error
			for name, p := range all {
				p.train = train
				w.submit(tinyJob(name, 2), "of-"+name, 0)
				ends = append(ends, p.join(t, name, w.token(name)))
			}
			watchdog.Wait(t, "the moment of the kill", func() { <-kill.open }, w.state)
			for _, end := range ends {
				end()
			}
			w.close()

			again := open(t, killed, 0)
			for name, p := range all {
				p.train = nil
				p.join(t, name, again.token(name))
			}
			again.becomes("one", store.StateFinished)
			again.becomes("two", store.StateFinished)
			count := map[string]int{}
			for _, e := range again.ledgers() {
				count[e.Act]++
			}
			want := map[string]int{"reserved": 2, "training": 2, "committed": 0}[at] // given back: nothing of them was seen
			if count[store.SpendCharge] != 4 || count[store.SpendReturn] != want || count[store.SpendReserve] != 4+want {
				t.Errorf("entries %v", count)
			}
		})
	}
}

// TestARoundThatCannotBeChargedCounts: the job's store breaks after the round was drawn. It owes
// its cost there, and the fleet does not get it back for anybody else to spend.
func TestARoundThatCannotBeChargedCounts(t *testing.T) {
	dir, p := t.TempDir(), newPeople(t, 3)
	var once sync.Once
	p.train = func(context.Context, int, string) {
		once.Do(func() {
			// The coordinator writes to it at the same time.
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "jobs", "one", store.FileName)+"?_pragma=busy_timeout(60000)")
			ok(t, err)
			_, err = db.Exec(`CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
			ok(t, errors.Join(err, db.Close()))
		})
	}
	w := open(t, dir, 0)
	w.submit(tinyJob("one", 2), "", 0)
	p.join(t, "one", w.token("one"))
	w.becomes("one", store.StateFailed)
	if events, _ := w.h.Events(store.DefaultPool); len(events) != 1 {
		t.Errorf("the fleet counts %d rounds, and one is owed", len(events))
	}
}

// TestAJobThatWasPutBackIsRefused: its folder is of before a round that the fleet has charged.
func TestAJobThatWasPutBackIsRefused(t *testing.T) {
	var before string
	dir := t.TempDir()
	first := newBarrier(1, func() { before = copyDir(t, dir) })
	var ended atomic.Int32
	b := between{begun: func() { first.passOnce() }, ending: func() { ended.Add(1) }}
	w := openWith(t, dir, 0, func(h coordinator.Host) coordinator.Host { b := b; b.Host = h; return b })
	p := newPeople(t, 3)
	w.submit(tinyJob("one", 40), "", 0)
	end := p.join(t, "one", w.token("one"))
	w.until("one", "makes rounds", func(store.Hosted) bool { return ended.Load() >= 2 })
	end()
	w.close()
	ok(t, os.RemoveAll(filepath.Join(dir, "jobs", "one")))
	ok(t, os.Rename(filepath.Join(before, "jobs", "one"), filepath.Join(dir, "jobs", "one")))
	again := open(t, dir, 0)
	again.until("one", "is refused", func(j store.Hosted) bool {
		return j.State == store.StateFailed && strings.Contains(j.Reason, "restored from an older copy")
	})
}

// passOnce is pass for a barrier of one that many come to.
func (b *barrier) passOnce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.here == 0 {
		b.here = 1
		b.do()
		close(b.open)
	}
}

// TestAFolderOfOneJobBecomesAServers: its devices, bans, invitations and operators are the
// fleet's from then on, what it spent counts, and the job continues with other jobs beside it.
func TestAFolderOfOneJobBecomesAServers(t *testing.T) {
	dir, p := t.TempDir(), newPeople(t, 3)
	j := tinyJob("old", 3)
	j.Enrolment.Secret = "a secret of the job file's"
	j, err := job.Parse(strings.NewReader(string(fileOf(t, j))))
	ok(t, err)
	alone, err := coordinator.New(coordinator.Config{Job: j, Dir: dir, Base: tiny.Base(t, 8, 1, 8), Hosts: []string{}})
	ok(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- alone.Run(ctx) }()
	front := serveOne(t, alone)
	end := p.join(t, "old", front.token)
	watchdog.Wait(t, "a round", func() {
		for alone.Status().Version < 1 {
			time.Sleep(time.Millisecond)
		}
	})
	if _, err := store.OpenShared(dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a folder in use is taken over: %v", err)
	}
	end()
	stop()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ok(t, alone.Close())
	front.Close()
	made := len(alone.Rounds())
	hand, err := store.OpenFleet(dir)
	ok(t, err)
	_, operator, err := hand.AddOperator("Ada", store.RoleViewer, time.Hour)
	ok(t, err)
	_, invited, err := hand.Invite("by name", 2, time.Hour)
	ok(t, err)
	listed, err := hand.Devices()
	ok(t, err)
	banned := listed[0].Identity
	_, err = hand.Ban(banned, "seen to lie")
	ok(t, err)
	ok(t, hand.Close())

	w := open(t, dir, 0)
	b := fileOf(t, j)
	w.with(func(f *store.Fleet) {
		if o, err := f.OperatorByToken(operator); err != nil || o.Name != "Ada" {
			t.Errorf("the operator is %+v, %v", o, err)
		}
		if all, err := f.Devices(); err != nil || len(all) != 3 || all[0].Excluded != "seen to lie" {
			t.Errorf("devices %+v, %v", all, err)
		}
		_, err := f.Pardon(banned)
		ok(t, err)
		ok(t, f.Submit(store.Hosted{Name: "old", Folder: ".", File: b}))
	})
	w.submit(tinyJob("new", 1), "", 0)
	// They come back by the secret that they came with first; the new job has the fleet's,
	// and the invitation, which is the fleet's too.
	p.join(t, "old", withSecret(t, w.token("old"), []byte(j.Enrolment.Secret)))
	p.join(t, "new", w.token("new"))
	w.becomes("old", store.StateFinished)
	w.becomes("new", store.StateFinished)
	guest := newPeople(t, 1)
	w.submit(tinyJob("later", 1), "", 0)
	guest.join(t, "later", withSecret(t, w.token("later"), invited))
	w.until("later", "has a guest", func(store.Hosted) bool {
		f, err := w.h.Fleet()
		ok(t, err)
		all, err := f.Devices()
		ok(t, errors.Join(err, f.Close()))
		return len(all) == 4 && all[3].Invitation == 1
	})
	var imported int
	begun := map[uint64]bool{}
	for _, e := range w.ledgers() {
		if e.Job == "old" {
			imported += map[bool]int{true: 1}[e.Act == store.SpendCharge && !begun[e.Round]]
			begun[e.Round] = e.Act == store.SpendReserve
		}
	}
	if imported == 0 || imported > made {
		t.Errorf("%d rounds of before are in the fleet's ledger, %d were made", imported, made)
	}
}

// TestWhatAFolderSpentCountsBeforeItsJobIsOpened: nobody lets the job go on that ran in the
// folder; a round of it was charged, and another owes its cost.
func TestWhatAFolderSpentCountsBeforeItsJobIsOpened(t *testing.T) {
	dir := t.TempDir()
	alone, err := store.Open(dir, store.Options{Task: "old"})
	ok(t, err)
	for round := uint64(1); round <= 2; round++ {
		draw := dp.Certificate{Method: dp.MethodPoisson, Generator: "crypto/rand", Rate: 0.5, Population: 24}
		cost := dp.Rounds(dp.Mechanism{SamplingRate: 0.5, NoiseMultiplier: 2}, 1)
		cost.Round, cost.Certificate = round, draw.Hash()
		_, err := alone.BeginRound(store.Round{Version: 0, Rank: 1, Certificate: draw, Cost: &cost})
		ok(t, err)
		if round == 1 {
			_, err = alone.Charge(cost, store.Note{})
			ok(t, err)
		}
	}
	ok(t, alone.Close())
	shared, err := store.OpenShared(dir)
	ok(t, errors.Join(err, shared.Close()))
	f, err := store.OpenFleet(dir)
	ok(t, err)
	ok(t, f.Submit(store.Hosted{Name: "old", Folder: ".", File: fileOf(t, tinyJob("old", 3))}))
	ok(t, errors.Join(f.Steer("old", store.WantPause, ""), f.Close()))
	for range 2 { // a second start takes nothing twice
		w := open(t, dir, 0)
		w.becomes("old", store.StatePaused)
		if events, _ := w.h.Events(store.DefaultPool); len(events) != 2 {
			t.Errorf("the fleet counts %d rounds, and two were drawn", len(events))
		}
		w.close()
	}
}

// TestAFoldersDevicesAreInThePoolOfItsJob: what it spent counts there, and nowhere else.
func TestAFoldersDevicesAreInThePoolOfItsJob(t *testing.T) {
	dir, key := t.TempDir(), [32]byte{1}
	alone, err := store.Open(dir, store.Options{Task: "old"})
	ok(t, err)
	_, err = alone.Enrol(key, 0)
	ok(t, errors.Join(err, alone.Close()))
	shared, err := store.OpenShared(dir)
	ok(t, errors.Join(err, shared.Close()))
	f, err := store.OpenFleet(dir)
	ok(t, err)
	file := fileOf(t, tinyJob("old", 3))
	ok(t, f.Submit(store.Hosted{Name: "old", Folder: ".", Pool: "clinics", File: file}))
	members, err := f.Members()
	ok(t, errors.Join(err, f.Close()))
	if len(members) != 1 || len(members["clinics"]) != 1 {
		t.Errorf("by pool: %v", members)
	}
}

// TestOneDeviceInTwoJobs: what is held against a device is held in all jobs of its
// pool, three rounds of any of them exclude it from all, and a pardon takes it in again.
// It cannot be in a job of another pool.
func TestOneDeviceInTwoJobs(t *testing.T) {
	w, p := open(t, t.TempDir(), 0), newPeople(t, 1)
	for _, name := range []string{"one", "two"} { // they never have enough devices
		w.submit(tinyJob(name, 1), "", 0)
		p.join(t, name, w.token(name))
	}
	w.submit(tinyJob("apart", 1), "others", 0)
	connected := func(name string, n int) {
		t.Helper()
		w.until(name, "has its devices", func(store.Hosted) bool {
			s, _ := w.h.Status(name)
			return s.Enrolled == n && s.Connected == n // one that is excluded is not of the population
		})
	}
	connected("one", 1)
	connected("two", 1)
	p.refused(t, "apart", w.token("apart"), "share no device")
	id := [32]byte(p.keys[0].Public().(ed25519.PublicKey))
	ok(t, w.h.Seat("one").Declined(7, map[[32]byte]uint16{id: 21}))
	w.with(func(f *store.Fleet) { // operators see of it what they see of one job's
		sum, err := f.Summary()
		ok(t, err)
		if all, err := f.Devices(); err != nil || all[0].Declined != 21 || sum.Declining != 1 || sum.Programs[0] != (store.Group{Name: "starling/9", Devices: 1}) {
			t.Errorf("devices %+v, %+v, %v", all, sum, err)
		}
	})
	w.with(func(f *store.Fleet) { _, err := f.Forget(fmt.Sprintf("%x", id)); ok(t, err) })
	if out, err := w.h.Seat("two").Excluded(); err != nil || len(out) != 1 || out[id] != "" {
		t.Errorf("of a device that was forgotten, out of the draws are %v, %v", out, err)
	}
	strike := func(job string, round uint64) bool {
		t.Helper()
		_, excluded, err := w.h.Seat(job).Strike(id, round, "a vector of another length", false, 3)
		ok(t, err)
		return excluded
	}
	if strike("one", 1) || strike("two", 1) || strike("two", 1) || !strike("one", 2) {
		t.Error("three rounds of two jobs do not exclude, or fewer do")
	}
	connected("two", 0) // job one's engine struck it: the other is told
	w.with(func(f *store.Fleet) {
		all, err := f.Devices()
		ok(t, err)
		if len(all) != 1 || all[0].Strikes != 3 || all[0].Excluded != "one: a vector of another length" {
			t.Errorf("devices %+v", all)
		}
		_, err = f.Pardon(all[0].Identity)
		ok(t, err)
	})
	w.h.Kick()           // as who pardons over the network does
	var left atomic.Bool // it was told too early
	over := func(error) { left.Store(true) }
	p.over.Store(&over)
	var again func() []error
	w.until("two", "takes it in again", func(store.Hosted) bool {
		if s, _ := w.h.Status("two"); s.Connected == 1 {
			return true
		}
		if again == nil || left.Swap(false) {
			again = p.join(t, "two", w.token("two"))
		}
		return false
	})
}

// copyDir copies a folder as a kill leaves it: what is on the disk, while nothing is written.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	ok(t, os.CopyFS(to, os.DirFS(from)))
	ok(t, filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return errors.Join(err, os.Chmod(path, 0o600))
	}))
	return to
}

// TestAFullJobSpendsNoInvitation: who is invited to the fleet and is refused by a job that has no
// room has the invitation still, for one that has.
func TestAFullJobSpendsNoInvitation(t *testing.T) {
	w := open(t, t.TempDir(), 0)
	full := tinyJob("full", 4)
	full.Privacy.Delta = 0.2 // five members at most
	w.submit(full, "", 0)
	w.submit(tinyJob("roomy", 4), "", 0)
	var secret []byte
	w.with(func(f *store.Fleet) {
		var err error
		_, secret, err = f.Invite("", 1, time.Hour)
		ok(t, err)
	})
	fleet := func() (devices, used int) {
		w.with(func(f *store.Fleet) {
			all, err := f.Devices()
			ok(t, err)
			invitations, err := f.Invitations()
			ok(t, err)
			devices, used = len(all), invitations[0].Used
		})
		return devices, used
	}
	members, guest := newPeople(t, 5), newPeople(t, 1)
	members.train = func(ctx context.Context, _ int, _ string) { <-ctx.Done() }
	members.join(t, "full", w.token("full"))
	w.until("full", "is full", func(store.Hosted) bool { n, _ := fleet(); return n == 5 })
	refused := make(chan string, 100)
	guest.progress = func(e edge.Event) {
		if strings.Contains(e.Text, "no more devices may enrol") {
			select {
			case refused <- e.Text:
			default:
			}
		}
	}
	end := guest.join(t, "full", withSecret(t, w.token("full"), secret))
	watchdog.Wait(t, "the refusal", func() { <-refused }, w.state)
	end()
	if n, used := fleet(); n != 5 || used != 0 {
		t.Errorf("%d devices, %d uses of the invitation", n, used)
	}
	guest.join(t, "roomy", withSecret(t, w.token("roomy"), secret))
	w.until("roomy", "takes the guest", func(store.Hosted) bool { n, used := fleet(); return n == 6 && used == 1 })
}
