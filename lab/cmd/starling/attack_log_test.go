package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// Peers that a coordinator makes up without enrolling them in its log, or that it says
// more of than the log does: the device leaves the round with a code, and is there for the
// next.
func TestHostilePeersOutsideTheLog(t *testing.T) {
	const protocol = 306
	l := learn(t).lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	fresh := func() ed25519.PrivateKey {
		_, key, err := ed25519.GenerateKey(nil)
		l.must(err)
		return key
	}
	// others are the entries of peers, in the order of the roster.
	others := func(sh *attack.Shard, e []attack.Array) (of []attack.Array) {
		for _, e := range e {
			if !bytes.Equal(e[0].([]byte), sh.Mine()) {
				of = append(of, e)
			}
		}
		return of
	}
	proof := func(change func(proof attack.Array)) func(sh *attack.Shard) []byte {
		return func(sh *attack.Shard) []byte {
			roster, err := attack.DecodeArray(sh.Roster(), 5)
			l.must(err)
			of, err := attack.DecodeArray(roster[4].([]byte), 3)
			l.must(err)
			change(of)
			roster[4] = attack.Encode(of)
			return attack.Encode(roster)
		}
	}
	for _, c := range []struct {
		lie    string
		roster func(sh *attack.Shard) []byte
	}{
		{"a peer that was never enrolled", func(sh *attack.Shard) []byte {
			sh.Peers[0].Pose(fresh(), fresh())
			return sh.Remade(func(e []attack.Array) []attack.Array {
				var of []attack.Array
				for _, e := range e {
					if bytes.Equal(e[0].([]byte), sh.Mine()) {
						of = append(of, e)
					}
				}
				for _, m := range sh.Peers {
					of = append(of, m.Entry(l.Authority))
				}
				slices.SortFunc(of, func(a, b attack.Array) int { return bytes.Compare(a[0].([]byte), b[0].([]byte)) })
				return of
			})
		}},
		{"a peer under the name of one that was", func(sh *attack.Shard) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				others(sh, e)[0][5] = []byte(l.Invented[7].Public().(ed25519.PublicKey))
				return e
			})
		}},
		{"two peers' names exchanged", func(sh *attack.Shard) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				of := others(sh, e)
				of[0][5], of[1][5] = of[1][5], of[0][5]
				return e
			})
		}},
		{"one device twice", func(sh *attack.Shard) []byte {
			sh.Peers[0].Pose(l.Invented[1], fresh())
			return sh.Remade(func(e []attack.Array) []attack.Array {
				others(sh, e)[0][5] = others(sh, e)[1][5]
				return e
			})
		}},
		{"peers that say of nobody who it is", func(sh *attack.Shard) []byte {
			return sh.Remade(func(e []attack.Array) []attack.Array {
				for i := range e {
					e[i] = e[i][:5]
				}
				return e
			})
		}},
		{"nothing that proves it", func(sh *attack.Shard) []byte {
			roster, err := attack.DecodeArray(sh.Roster(), 5)
			l.must(err)
			return attack.Encode(roster[:4])
		}},
		{"a peer that is older than the log says", proof(func(of attack.Array) { of[1].(attack.Array)[1] = uint64(1_500_000_000) })},
		{"another's place in the log", proof(func(of attack.Array) { of[0].(attack.Array)[0] = uint64(6) })},
		{"a place behind the head", proof(func(of attack.Array) { of[0].(attack.Array)[0] = uint64(1) << 39 })},
		{"a place that is none", proof(func(of attack.Array) { of[0].(attack.Array)[0] = uint64(1) << 63 })},
		{"one place for two", proof(func(of attack.Array) { of[0].(attack.Array)[0] = of[0].(attack.Array)[1] })},
		{"fewer places", proof(func(of attack.Array) { of[0] = of[0].(attack.Array)[1:] })},
		{"ten thousand places", proof(func(of attack.Array) {
			list := attack.Array{}
			for i := range 10_000 {
				list = append(list, uint64(i))
			}
			of[0], of[1] = list, list
		})},
		{"a hash too few", proof(func(of attack.Array) { of[2] = of[2].([]byte)[32:] })},
		{"a hash too many", proof(func(of attack.Array) { of[2] = append(of[2].([]byte), make([]byte, 32)...) })},
		{"half a hash", proof(func(of attack.Array) { of[2] = of[2].([]byte)[:16] })},
		{"half a mebibyte of hashes", proof(func(of attack.Array) { of[2] = make([]byte, 1<<19) })},
		{"a proof that is none", func(sh *attack.Shard) []byte {
			roster, err := attack.DecodeArray(sh.Roster(), 5)
			l.must(err)
			roster[4] = []byte{0x83}
			return attack.Encode(roster)
		}},
		{"an empty proof", func(sh *attack.Shard) []byte {
			roster, err := attack.DecodeArray(sh.Roster(), 5)
			l.must(err)
			roster[4] = []byte{}
			return attack.Encode(roster)
		}},
	} {
		sh, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 2)
		l.must(err)
		l.must(s.Say(ctx, sh.Round, attack.Advertise, c.roster(sh)))
		f, err := s.Wait(ctx, attack.Refuse)
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.lie, err, device)
		}
		if f.Uint(1) != protocol {
			t.Errorf("%s: declined with %d, not %d: %s", c.lie, f.Uint(1), protocol, f.Text(2))
		}
	}
	// Of the whole truth it takes part.
	if sum := l.whole(ctx, s, l.plan(nil)); len(sum) == 0 {
		t.Error("no update")
	}
	device.says("your shard: 3 devices of 9 enrolled, 3 of them enrolled within one minute of each other")
}

// Logs that are not the one that a device knows end its part in the job, whoever it is that
// shows them: both heads are in its account, signed.
func TestHostileViewsOfTheLog(t *testing.T) {
	truth := learn(t)
	for name, lie := range map[string]func(l *liar, s *attack.Session) (head []byte, growth attack.Array){
		"an old head, again": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			return l.Log.HeadOf(s.Shown - 2), attack.Array{uint64(s.Shown - 2), nil}
		},
		"a fork as long": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			fork := l.Log.Fork(4)
			for len(fork.Leaves) < s.Shown {
				fork.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
			}
			return fork.Head(), attack.Array{uint64(s.Shown), nil}
		},
		"a fork that is longer": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			fork := l.Log.Fork(4)
			for len(fork.Leaves) < s.Shown+5 {
				fork.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
			}
			return fork.Head(), fork.Growth(s.Shown, len(fork.Leaves))
		},
		"more keys, from nowhere": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			l.Log.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
			return l.Log.Head(), attack.Array{0, nil}
		},
		"more keys, with a proof of wild size": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			l.Log.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
			return l.Log.Head(), attack.Array{uint64(s.Shown), make([]byte, 82*32)}
		},
		"a head that nobody signed": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			return bytes.Replace(l.Log.Head(), []byte("\n9\n"), []byte("\n8\n"), 1), attack.Array{0, nil}
		},
		"a head of another's log": func(l *liar, s *attack.Session) ([]byte, attack.Array) {
			return attack.NewLog().Head(), attack.Array{0, nil}
		},
		"no head": func(l *liar, s *attack.Session) ([]byte, attack.Array) { return []byte{}, attack.Array{0, nil} },
	} {
		t.Run(name, func(t *testing.T) {
			l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
			ctx := watchdog.Context(t)
			folder := t.TempDir()
			device := joins(t, folder, l.token)
			s := l.session(ctx, device)
			l.whole(ctx, s, l.plan(nil))
			l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}))
			var head []byte
			var growth attack.Array
			plan := l.plan(func(p attack.Array) { head, growth = lie(l, s); p[attack.PlanHead] = head })
			l.must(s.Send(ctx, attack.Assignment, attack.Array{plan, nil, 60_000, growth}))
			if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != 300 {
				t.Errorf("%v, %v", f, err)
			}
			if code := device.exit(); code != 1 || !strings.Contains(device.String(), "log of enrolled keys") {
				t.Errorf("ended with %d: %s", code, device)
			}
			// As another process it still knows what it knew: the coordinator's log is cut to
			// what it was before, and nothing changes.
			s.End()
			l.Lie = func(kind byte, body attack.Array) {
				if kind == attack.Enrolled {
					body[4], body[5] = l.Log.HeadOf(5), attack.Array{0, nil}
				}
			}
			again := joins(t, folder, l.token)
			if code := again.exit(); code != 1 || !strings.Contains(again.String(), "log of enrolled keys") {
				t.Errorf("after a restart: ended with %d: %s", code, again)
			}
		})
	}
}

// Two devices of one shard that are shown two logs have no keys in common: what one of them
// has signed under its head is nothing to the other.
func TestHostileTwoLogsInAShard(t *testing.T) {
	l := learn(t).lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token)
	s := l.session(ctx, device)
	own := l.plan(nil)
	l.round--
	fork := l.Log.Fork(len(l.Log.Leaves) - 1)
	fork.Add(attack.NewDevice(l.Token(l.url)).Public(), 1_700_000_000)
	other := l.plan(func(p attack.Array) { p[attack.PlanHead] = fork.Head() })
	sh, err := attack.NewSplitShard(ctx, l.Coordinator, s, own, other, 2)
	l.must(err)
	l.must(s.Say(ctx, sh.Round, attack.Advertise, sh.Roster()))
	if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != 306 {
		t.Errorf("%v, %v\n%s", f, err, device)
	}
}

// An owner who wants peers of some age gets no round with younger ones, and no job that does
// not say.
func TestHostileYoungShard(t *testing.T) {
	truth := learn(t)
	l := truth.lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	device := joins(t, t.TempDir(), l.token, "--peer-age", "300000h")
	s := l.session(ctx, device)
	sh, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 2)
	l.must(err)
	l.must(s.Say(ctx, sh.Round, attack.Advertise, sh.Roster()))
	if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(1) != 310 {
		t.Errorf("%v, %v\n%s", f, err, device)
	}
	without := truth.lies(t, nil)
	without.Log, without.Invented, without.Job[attack.JobLog] = nil, nil, make([]byte, 32)
	without.token = without.Token(without.url).String()
	_, witness, err := note.GenerateKey(rand.Reader, "witness.example")
	l.must(err)
	for flag, value := range map[string]string{"--peer-age": "1h", "--log": witness} {
		bare := joins(t, t.TempDir(), without.token, flag, value)
		if code := bare.exit(); code == 0 || !strings.Contains(bare.String(), strings.TrimPrefix(flag, "--")) {
			t.Errorf("%s: ended with %d: %s", flag, code, bare)
		}
	}
}

// What a device was shown of a round proves afterwards who was in its shard, to anybody; and
// of two logs, both heads.
func TestRosterProof(t *testing.T) {
	l := learn(t).lies(t, func(job attack.Array) { job[attack.JobRounds] = 1000 })
	ctx := watchdog.Context(t)
	folder := t.TempDir()
	device := joins(t, folder, l.token)
	s := l.session(ctx, device)
	for range 18 { // of which 16 are kept
		l.whole(ctx, s, l.plan(nil))
		l.must(s.Send(ctx, attack.Outcome, attack.Array{l.round, attack.Committed, "", 0}))
	}
	account := func(more ...string) (int, string) {
		c := runs(t, append([]string{"account"}, more...)...)
		return c.exit(), c.String()
	}
	of := []string{"--data", filepath.Join(folder, "data.tsv"), "--accounts", filepath.Join(folder, "accounts"), "--identity", filepath.Join(folder, "identity.pem")}
	path := filepath.Join(folder, "roster.json")
	if code, said := account(append(of, "--proof", path)...); code != 0 {
		t.Fatal(said)
	}
	b, err := os.ReadFile(path)
	l.must(err)
	proof, err := edge.ParseRosterProof(b)
	l.must(err)
	proven, err := proof.Verify()
	l.must(err)
	if proven.Round != l.round || proven.Keys != 9 || len(proven.Devices) != 3 || proven.Peers.Together != 3 {
		t.Errorf("%+v", proven)
	}
	for _, d := range proven.Devices {
		if !slices.ContainsFunc(l.Log.Leaves, func(leaf attack.Leaf) bool {
			return hex.EncodeToString(leaf.Key) == d.Identity && leaf.At == d.Enrolled.Unix()
		}) {
			t.Errorf("%+v is not in the log", d)
		}
	}
	if code, said := account("--proof", path); code != 0 {
		t.Error(said)
	}
	if code, said := account(append(of, "--proof", path, "--round", "1")...); code == 0 || !strings.Contains(said, "no roster of round 1 is kept") {
		t.Errorf("%d: %s", code, said)
	}
	for name, lie := range map[string]func(p *edge.RosterProof){
		"another job":     func(p *edge.RosterProof) { p.Job = changed(p.Job, 5) },
		"another plan":    func(p *edge.RosterProof) { p.Plan = changed(p.Plan, 50) },
		"another roster":  func(p *edge.RosterProof) { p.Roster = changed(p.Roster, 300) },
		"another proof":   func(p *edge.RosterProof) { p.Roster = changed(p.Roster, len(p.Roster)-40) },
		"a longer roster": func(p *edge.RosterProof) { p.Roster = append(slices.Clone(p.Roster), 0) },
		"no roster":       func(p *edge.RosterProof) { p.Roster = nil },
	} {
		of := *proof
		lie(&of)
		if proven, err := of.Verify(); !errors.Is(err, edge.ErrRosterProof) {
			t.Errorf("%s: %+v, %v", name, proven, err)
		}
	}
	// The coordinator goes back on its log: the account shows both heads, and forgets.
	l.must(s.Send(ctx, attack.Assignment, attack.Array{l.plan(func(p attack.Array) { p[attack.PlanHead] = l.Log.HeadOf(7) }), nil, 60_000, attack.Array{7, nil}}))
	if code := device.exit(); code != 1 {
		t.Errorf("ended with %d: %s", code, device)
	}
	key := hex.EncodeToString(l.Log.Key.Public().(ed25519.PublicKey))
	out := new(bytes.Buffer)
	if code := run(ctx, append([]string{"account"}, of...), nil, out, out); code != 0 || !strings.Contains(out.String(), "REFUSED") ||
		!strings.Contains(out.String(), string(l.Log.HeadOf(7))) || !strings.Contains(out.String(), string(l.Log.Head())) {
		t.Errorf("%d: %s", code, out)
	}
	if code, said := account(append(of, "--forget-log", key[:7])...); code == 0 {
		t.Error(said)
	}
	if code, said := account(append(of, "--forget-log", key[:8])...); code != 0 {
		t.Error(said)
	}
	out.Reset()
	if code := run(ctx, append([]string{"account"}, of...), nil, out, out); code != 0 || strings.Contains(out.String(), "log of enrolled keys") {
		t.Errorf("%d: %s", code, out)
	}
}
