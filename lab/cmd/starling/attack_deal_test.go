package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// deals starts a coordinator that has enrolled more devices of its own, and whose job says
// that rounds are dealt.
func (tr truth) deals(t *testing.T) *liar {
	l := tr.lies(t, func(job attack.Array) { job[attack.JobRounds], job[attack.JobDealt] = 1000, true })
	l.Invent(24)
	return l
}

// dealt is a plan of so many groups.
func (l *liar) dealt(groups int) []byte {
	return l.plan(func(p attack.Array) { p[attack.PlanGroups] = groups })
}

// A coordinator that has enrolled 32 devices of its own puts two of them into a shard with
// one victim, and reads its update. Where it may choose who is in a shard it has that in the
// first round, as in a round of one group. Where devices are dealt it has it in none of
// ten: of a million groups the victim's has none of the 32, and forcing two of them in
// ends in nothing.
func TestHostileChosenShard(t *testing.T) {
	truth := learn(t)
	ctx := watchdog.Context(t)
	chosen := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	device := joins(t, t.TempDir(), chosen.token)
	s := chosen.session(ctx, device)
	if v := chosen.whole(ctx, s, chosen.plan(nil)); len(v) == 0 {
		t.Error("no update: the test shows nothing")
	}
	device.says("who is in it was the coordinator's choice")

	l := truth.deals(t)
	device = joins(t, t.TempDir(), l.token)
	s = l.session(ctx, device)
	l.must(saidNoMore(ctx, l, s, 1<<20, 10))
	if v := l.whole(ctx, s, l.dealt(1)); len(v) == 0 {
		t.Error("no update of a round of one group")
	}
	device.says("all of the round are in one group")
	l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}))

	// With two groups half of its devices are in the victim's: what keeps it out is how many
	// it would need, and nothing else.
	if v := l.whole(ctx, s, l.dealt(2)); len(v) == 0 {
		t.Error("no update of a round of two groups")
	}
	device.says("dealt into one of 2 groups by its devices' own keys")
}

// saidNoMore tries some rounds of so many groups, and is an error where one of them gave the
// coordinator more than the victim's keys and lot.
func saidNoMore(ctx context.Context, l *liar, s *attack.Session, groups, rounds int) error {
	for n := range rounds {
		sh, err := attack.NewShard(ctx, l.Coordinator, s, l.dealt(groups), 2)
		if !errors.Is(err, attack.ErrApart) {
			return errors.Join(errors.New("its devices are in the victim's group"), err)
		}
		if n%2 == 0 {
			continue // it goes on to another round
		}
		if err := sh.Force(l.Coordinator, l.Invented[:2]); err != nil {
			return err
		}
		if err := s.Say(ctx, sh.Round, attack.Advertise, sh.Roster()); err != nil {
			return err
		}
		f, err := s.Wait(ctx, attack.Refuse)
		if err != nil || f.Uint(1) != 306 {
			return errors.Join(errors.New("a shard that was not dealt is not declined"), err)
		}
	}
	return nil
}

// What a coordinator says of lots that is not so: the device leaves the round with a code, and
// is there for the next.
func TestHostileLots(t *testing.T) {
	const plan, protocol = 300, 306
	l := learn(t).deals(t)
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	before := l.dealt(2)
	l.must(s.Assign(ctx, before))
	_, err := s.Receive(ctx, attack.Advertise)
	l.must(err)
	declined := func(lie string, code uint64) {
		t.Helper()
		f, err := s.Wait(ctx, attack.Refuse)
		if err != nil {
			t.Fatalf("%s: %v\n%s", lie, err, device)
		}
		if f.Uint(1) != code {
			t.Errorf("%s: declined with %d, not %d: %s", lie, f.Uint(1), code, f.Text(2))
		}
	}
	// lotOf is what the first peer would have drawn for another plan.
	lotOf := func(sh *attack.Shard, plan []byte) []byte {
		m, err := attack.NewMember(sh.Peers[0].Identity(), attack.Encode(l.Job), plan)
		l.must(err)
		return m.Lot()
	}
	changed := func(sh *attack.Shard, change func(first attack.Array, e []attack.Array)) []byte {
		return sh.Remade(func(e []attack.Array) []attack.Array {
			for i := range e {
				if bytes.Equal(e[i][5].([]byte), sh.Peers[0].Public()) {
					change(e[i], e)
				}
			}
			return e
		})
	}
	with := func(lot func(sh *attack.Shard, now []byte) []byte) func(sh *attack.Shard, now []byte) []byte {
		return func(sh *attack.Shard, now []byte) []byte {
			return changed(sh, func(first attack.Array, _ []attack.Array) { first[7] = lot(sh, now) })
		}
	}
	for _, c := range []struct {
		lie    string
		roster func(sh *attack.Shard, now []byte) []byte
	}{
		{"a device of another group", func(sh *attack.Shard, _ []byte) []byte {
			for _, key := range l.Invented {
				if g, err := sh.Peers[0].Group(public(key), sh.LotOf(key)); err == nil && g != sh.Group() {
					l.must(sh.Force(l.Coordinator, []ed25519.PrivateKey{sh.Peers[1].Identity(), key}))
					return sh.Roster()
				}
			}
			t.Fatal("all of its devices are in one of two groups")
			return nil
		}},
		{"another peer's lot", func(sh *attack.Shard, _ []byte) []byte {
			return changed(sh, func(first attack.Array, e []attack.Array) { first[7] = sh.LotOf(sh.Peers[1].Identity()) })
		}},
		{"the lot of a round before", with(func(sh *attack.Shard, _ []byte) []byte { return lotOf(sh, before) })},
		{"the lot of an old head", with(func(sh *attack.Shard, now []byte) []byte {
			p, err := attack.DecodeArray(now, attack.PlanFigure+1)
			l.must(err)
			p[attack.PlanHead] = l.Log.HeadOf(len(l.Log.Leaves) - 1)
			return lotOf(sh, attack.Encode(p))
		})},
		{"the lot of another view of the log", with(func(sh *attack.Shard, now []byte) []byte {
			p, err := attack.DecodeArray(now, attack.PlanFigure+1)
			l.must(err)
			fork := l.Log.Fork(len(l.Log.Leaves) - 1)
			fork.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
			p[attack.PlanHead] = fork.Head()
			return lotOf(sh, attack.Encode(p))
		})},
		{"a lot with a bit changed", with(func(sh *attack.Shard, _ []byte) []byte {
			lot := sh.LotOf(sh.Peers[0].Identity())
			lot[60] ^= 1
			return lot
		})},
		{"a lot of zeros", with(func(*attack.Shard, []byte) []byte { return make([]byte, 80) })},
		{"a short lot", with(func(*attack.Shard, []byte) []byte { return make([]byte, 79) })},
		{"a long lot", with(func(*attack.Shard, []byte) []byte { return bytes.Repeat([]byte{1}, 1<<16) })},
		{"no lot", func(sh *attack.Shard, _ []byte) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				e[0] = e[0][:7]
				return e
			})
		}},
		{"no lots", func(sh *attack.Shard, _ []byte) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				for i := range e {
					e[i] = e[i][:7]
				}
				return e
			})
		}},
		{"another lot of the device's own", func(sh *attack.Shard, _ []byte) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				lot := slices.Clone(e[sh.Me()][7].([]byte))
				lot[60] ^= 1
				e[sh.Me()][7] = lot
				return e
			})
		}},
	} {
		now := l.dealt(2)
		sh, err := attack.NewShard(ctx, l.Coordinator, s, now, 2)
		l.must(err)
		l.must(s.Say(ctx, sh.Round, attack.Advertise, c.roster(sh, now)))
		declined(c.lie, protocol)
	}
	l.must(s.Assign(ctx, l.dealt(0)))
	declined("no groups", plan)
	// Of the whole truth it takes part.
	if v := l.whole(ctx, s, l.dealt(2)); len(v) == 0 {
		t.Error("no update")
	}
}

func public(key ed25519.PrivateKey) []byte { return key.Public().(ed25519.PublicKey) }

// An owner who wants groups joins no job without them and takes no round of fewer.
func TestHostileFewGroups(t *testing.T) {
	truth := learn(t)
	ctx := watchdog.Context(t)
	chosen := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	device := joins(t, t.TempDir(), chosen.token, "--groups", "1")
	if code := device.exit(); code == 0 || !strings.Contains(device.String(), "groups: the job's coordinator chooses who is in a shard") {
		t.Errorf("ended with %d: %s", code, device)
	}
	l := truth.deals(t)
	device = joins(t, t.TempDir(), l.token, "--groups", "100")
	s := l.session(ctx, device)
	l.must(s.Assign(ctx, l.dealt(99)))
	if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != 310 {
		t.Errorf("%v, %v\n%s", f, err, device)
	}
	device.says("groups: the round's devices are dealt into 99 groups")
	l.must(s.Assign(ctx, l.dealt(100)))
	if _, err := s.Receive(ctx, attack.Advertise); err != nil {
		t.Error(err)
	}
}

// The proof of a dealt round's roster says how many groups there were, and is none of another
// number.
func TestDealtRosterProof(t *testing.T) {
	l := learn(t).deals(t)
	ctx := watchdog.Context(t)
	folder := t.TempDir()
	s := l.session(ctx, joins(t, folder, l.token))
	l.whole(ctx, s, l.dealt(2))
	l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}))
	path := filepath.Join(folder, "roster.json")
	out := new(bytes.Buffer)
	if code := run(ctx, []string{"account", "--data", filepath.Join(folder, "data.tsv"), "--accounts", filepath.Join(folder, "accounts"),
		"--identity", filepath.Join(folder, "identity.pem"), "--proof", path}, nil, out, out); code != 0 || !strings.Contains(out.String(), "dealt into one of 2 groups") {
		t.Fatalf("%d: %s", code, out)
	}
	b, err := os.ReadFile(path)
	l.must(err)
	proof, err := edge.ParseRosterProof(b)
	l.must(err)
	if proven, err := proof.Verify(); err != nil || proven.Peers.Groups != 2 || len(proven.Devices) != 3 {
		t.Errorf("%+v, %v", proven, err)
	}
	for _, groups := range []int{0, 3, 1 << 20} {
		plan, err := attack.DecodeArray(proof.Plan, attack.PlanFigure+1)
		l.must(err)
		plan[attack.PlanGroups] = groups
		of := *proof
		of.Plan = attack.Encode(plan)
		if proven, err := of.Verify(); !errors.Is(err, edge.ErrRosterProof) {
			t.Errorf("%d groups: %+v, %v", groups, proven, err)
		}
	}
	roster, err := attack.DecodeArray(proof.Roster, 4)
	l.must(err)
	lot := roster[3].(attack.Array)[0].(attack.Array)[7].([]byte)
	of := *proof
	of.Roster = changed(proof.Roster, bytes.Index(proof.Roster, lot)+40)
	if proven, err := of.Verify(); !errors.Is(err, edge.ErrRosterProof) {
		t.Errorf("another lot: %+v, %v", proven, err)
	}
}
