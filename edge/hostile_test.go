package edge

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// Lies in the handshake end Run with their cause.
func TestHostileHandshake(t *testing.T) {
	admit := func(h *house, change func(*wire.Enrolled)) {
		p, hello, welcome := h.accept()
		m := &wire.Enrolled{Proof: wire.CoordinatorProof(h.token.Secret, hello, welcome, p.id, h.task), Session: make([]byte, 32), Job: h.jobBytes}
		change(m)
		p.send(m)
	}
	for name, test := range map[string]struct {
		want error
		play func(h *house)
	}{
		"other version": {ErrVersion, func(h *house) {
			p := h.dialed()
			want[*wire.Hello](p)
			p.send(&wire.Welcome{Version: wire.Version + 1})
		}},
		"no common version": {ErrVersion, func(h *house) {
			p := h.dialed()
			want[*wire.Hello](p)
			p.send(&wire.Error{Code: wire.CodeVersion, Text: "coordinator speaks 7..9"})
		}},
		"proof of nothing": {ErrSecret, func(h *house) {
			admit(h, func(m *wire.Enrolled) { m.Proof = [32]byte{} })
		}},
		"another's job": {ErrSecret, func(h *house) {
			h.job.Alpha = 1000
			other, _ := h.job.AppendBinary(nil)
			admit(h, func(m *wire.Enrolled) { m.Job = other })
		}},
		"not private": {ErrNotPrivate, func(h *house) {
			h.job.Privacy.Private = false
			h.announce()
			admit(h, func(*wire.Enrolled) {})
		}},
		"unknown scheme": {ErrJob, func(h *house) {
			h.job.Uplink = "plaintext"
			h.announce()
			admit(h, func(*wire.Enrolled) {})
		}},
		"oversize base": {ErrJob, func(h *house) {
			h.job.Base.Size = 1 << 31
			h.announce()
			admit(h, func(*wire.Enrolled) {})
		}},
		"wrong base": {ErrBase, func(h *house) {
			h.mu.Lock()
			for path := range h.blobs {
				h.blobs[path] = append(bytes.Clone(h.blobs[path][1:]), 0)
			}
			h.mu.Unlock()
			admit(h, func(*wire.Enrolled) {})
		}},
		"no base": {ErrBase, func(h *house) {
			h.mu.Lock()
			h.blobs = nil
			h.mu.Unlock()
			admit(h, func(*wire.Enrolled) {})
		}},
		"base that is none": {ErrBase, func(h *house) {
			h.job.Base = h.blob([]byte("not a model"))
			h.announce()
			admit(h, func(*wire.Enrolled) {})
		}},
		"sequence beyond the base": {ErrBase, func(h *house) {
			h.job.Sequence = 9
			h.announce()
			admit(h, func(*wire.Enrolled) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			d := h.start(h.config(&constant{}))
			test.play(h)
			if err := d.wait(t); !errors.Is(err, test.want) {
				t.Errorf("%v, %v expected", err, test.want)
			}
		})
	}
}

// A turn of a round that this process was not assigned, as one gets that was
// started again in mid-round, costs that round and nothing else.
func TestHostileTurnOfAnUnknownRound(t *testing.T) {
	h := newHouse(t)
	h.start(h.config(&constant{}))
	p := h.admit(false)
	p.send(&wire.Turn{Round: 9, Number: 2})
	if m := want[*wire.Refuse](p); m.Round != 9 {
		t.Errorf("%+v", m)
	}
	p.assign(h.plan(10))
	want[*wire.Turn](p)
}

// Frames that no honest coordinator sends end Run with a *ProtocolError.
func TestHostileFrames(t *testing.T) {
	for name, play := range map[string]func(h *house, p *peer){
		"garbage":         func(h *house, p *peer) { p.pipe.Write(t.Context(), []byte{1, 2, 3}) },
		"empty":           func(h *house, p *peer) { p.pipe.Write(t.Context(), nil) },
		"wrong direction": func(h *house, p *peer) { p.send(&wire.Hello{MinVersion: 1, MaxVersion: 1}) },
		"second welcome":  func(h *house, p *peer) { p.send(&wire.Welcome{Version: 1}) },
		"oversize": func(h *house, p *peer) {
			p.pipe.Write(t.Context(), append([]byte{byte(wire.KindWait)}, make([]byte, 5000)...))
		},
		"plan that is none": func(h *house, p *peer) { p.send(&wire.Assignment{Plan: []byte{1}}) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			d := h.start(h.config(&constant{}))
			p := h.admit(false)
			play(h, p)
			broken := new(ProtocolError)
			if err := d.wait(t); !errors.As(err, &broken) {
				t.Errorf("%v, a ProtocolError expected", err)
			}
		})
	}
}

// A device that is asked to resume what it holds nothing of, because the
// assignment was lost with its connection, says so and takes the next round.
func TestResumeOfWhatIsNotHeld(t *testing.T) {
	h := newHouse(t)
	d := h.start(h.config(&constant{value: 0.01}))
	p := h.admit(false)
	p.send(&wire.Resume{Round: 9})
	if m := want[*wire.Refuse](p); m.Round != 9 || m.Code != wire.CodePlan {
		t.Errorf("%+v", m)
	}
	// In mid-round, too.
	p.assign(h.plan(10))
	want[*wire.Turn](p)
	p.send(&wire.Resume{Round: 11, Held: 1})
	if m := want[*wire.Refuse](p); m.Round != 11 {
		t.Errorf("%+v", m)
	}
	if e, dropped := d.saw(Dropped); !dropped || e.Round != 10 {
		t.Errorf("the round before: %+v", e)
	}
	p.assign(h.plan(12))
	if m := want[*wire.Turn](p); m.Round != 12 {
		t.Errorf("%+v", m)
	}
}

// Plans that this device does not take part in are refused with a code and a
// fixed text; the session goes on.
func TestHostilePlans(t *testing.T) {
	for name, test := range map[string]struct {
		code uint16
		text string // of the owner's event
		play func(h *house, p *peer)
	}{
		"other task":                    {wire.CodePlan, "another task", func(h *house, p *peer) { pl := h.plan(1); pl.Task[0]++; p.assign(pl) }},
		"other rank":                    {wire.CodePlan, "rank 5", func(h *house, p *peer) { pl := h.plan(1); pl.Rank = 5; p.assign(pl) }},
		"head alone":                    {wire.CodePlan, "rank 0", func(h *house, p *peer) { pl := h.plan(1); pl.Rank = 0; p.assign(pl) }},
		"less own noise than announced": {wire.CodePlan, "own noise of 0.1", func(h *house, p *peer) { pl := h.plan(1); pl.OwnNoise = 0.1; p.assign(pl) }},
		"own noise of more devices":     {wire.CodePlan, "counted on for 9", func(h *house, p *peer) { pl := h.plan(1); pl.Honest = 9; p.assign(pl) }},
		"other length":                  {wire.CodePlan, "values", func(h *house, p *peer) { pl := h.plan(1); pl.Values++; p.assign(pl) }},
		"endless":                       {wire.CodePolicy, "--steps=20000", func(h *house, p *peer) { pl := h.plan(1); pl.Steps = 20_000; p.assign(pl) }},
		"two plans": {wire.CodePlan, "two plans", func(h *house, p *peer) {
			p.assign(h.plan(1))
			want[*wire.Turn](p)
			pl := h.plan(1)
			pl.Rate *= 2
			p.assign(pl)
		}},
		"slice that is not there": {wire.CodeBlob, "404", func(h *house, p *peer) {
			h.withSlice(p, func(s *wire.Slice) { s.Blob.SHA256[0]++ })
		}},
		"slice of other values": {wire.CodeBlob, "does not decode", func(h *house, p *peer) {
			h.withSlice(p, func(s *wire.Slice) { s.Digest[0]++ })
		}},
		"slice in no known format": {wire.CodePlan, "format", func(h *house, p *peer) {
			pl := h.plan(1)
			pl.Seed = nil
			pl.Slice = wire.Slice{Blob: wire.Blob{Size: 4}, Format: "secret", Codec: "none"}
			p.assign(pl)
		}},
		"oversize slice": {wire.CodeBlob, "limit", func(h *house, p *peer) {
			h.withSlice(p, func(s *wire.Slice) { s.Blob.Size = 1 << 31 })
		}},
		"slice longer than announced": {wire.CodeBlob, "more than", func(h *house, p *peer) {
			h.withSlice(p, func(s *wire.Slice) { s.Blob.Size-- })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			d := h.start(h.config(&constant{value: 0.01}))
			p := h.admit(false)
			test.play(h, p)
			refusal, ok := p.next().(*wire.Refuse)
			for !ok { // turns that went out before the device found out
				refusal, ok = p.next().(*wire.Refuse)
			}
			if refusal.Code != test.code || refusal.Round != 1 {
				t.Errorf("refusal %+v", refusal)
			}
			e, _ := d.saw(Refused)
			if !strings.Contains(e.Text, test.text) {
				t.Errorf("owner was told %q", e.Text)
			}
			// Nothing about the round is answered any more, nor is it taken up again.
			p.send(&wire.Turn{Round: 1, Number: 1})
			p.assign(h.plan(1))
			if again := want[*wire.Refuse](p); again.Round != 1 {
				t.Errorf("replayed round: %+v", again)
			}
			p.assign(h.plan(2))
			want[*wire.Turn](p)
		})
	}
}

// withSlice assigns a plan whose adapter comes as a slice, changed.
func (h *house) withSlice(p *peer, change func(*wire.Slice)) []float32 {
	h.t.Helper()
	values := make([]float32, h.layout.Size(2))
	for i := range values {
		values[i] = float32(i%7) / 8
	}
	msg, decoded, err := quant.PackUpdate(values, nil, "bf16", "zstd")
	ok(h.t, err)
	pl := h.plan(1)
	pl.Seed = nil
	pl.Slice = wire.Slice{Blob: h.blob(msg), Digest: quant.Digest(decoded), Format: "bf16", Codec: "zstd"}
	change(&pl.Slice)
	p.assign(pl)
	return decoded
}

func TestTrainingStartsFromTheSlice(t *testing.T) {
	h := newHouse(t)
	tasks := make(chan Task, 1)
	h.start(h.config(&constant{value: 0.01, tasks: tasks}))
	p := h.admit(false)
	decoded := h.withSlice(p, func(*wire.Slice) {})
	task := watchdog.Recv(t, "the first training", tasks, h.sides()...)
	if quant.Digest(task.Start) != quant.Digest(decoded) || task.Rank != 2 || task.Steps != 3 || task.Batch != 2 || task.Sequence != 8 {
		t.Errorf("task starts elsewhere: %+v", task)
	}
	want[*wire.Turn](p)

	// The next round comes as a difference to what this device holds.
	target := make([]float32, len(decoded))
	for i := range target {
		target[i] = decoded[i] + 1.0/64
	}
	whole, now, err := quant.PackUpdate(target, nil, "f32", "none")
	ok(t, err)
	patch, same, err := quant.PackUpdate(now, decoded, "f32", "zstd")
	ok(t, err)
	if quant.Digest(same) != quant.Digest(now) {
		t.Fatal("a difference in f32 is not exact on these values")
	}
	pl := h.plan(2)
	pl.Seed = nil
	pl.Slice = wire.Slice{Blob: h.blob(whole), Digest: quant.Digest(now), Format: "f32", Codec: "none"}
	delete(h.blobs, strings.TrimPrefix(h.token.BlobURL(pl.Slice.Blob.SHA256), h.token.URL)) // only the patch can be had
	p.assign(pl, wire.Patch{From: [32]byte{1}, Blob: pl.Slice.Blob}, wire.Patch{From: quant.Digest(decoded), Blob: h.blob(patch)})
	task = watchdog.Recv(t, "the second training", tasks, h.sides()...)
	if quant.Digest(task.Start) != quant.Digest(now) {
		t.Error("patched slice differs")
	}
}

// What a device has fetched it can take differences to, even where it was
// dropped before its training ended: a straggler does not fetch every slice whole.
func TestASliceIsHeldBeforeTrainingEnds(t *testing.T) {
	h := newHouse(t)
	tasks := make(chan Task, 1)
	h.start(h.config(&constant{value: 0.01, tasks: tasks, gate: make(chan struct{})})) // it trains until it is stopped
	p := h.admit(false)
	decoded := h.withSlice(p, func(*wire.Slice) {})
	watchdog.Recv(t, "the first training", tasks, h.sides()...)
	want[*wire.Turn](p)
	p.send(&wire.Outcome{Round: 1, Result: wire.OutcomeDropped})
	whole, now, err := quant.PackUpdate(make([]float32, len(decoded)), nil, "f32", "none")
	ok(t, err)
	patch, _, err := quant.PackUpdate(now, decoded, "f32", "zstd")
	ok(t, err)
	pl := h.plan(2)
	pl.Seed = nil
	pl.Slice = wire.Slice{Blob: wire.Blob{SHA256: sha256.Sum256(whole), Size: uint64(len(whole))}, Digest: quant.Digest(now), Format: "f32", Codec: "none"}
	p.assign(pl, wire.Patch{From: quant.Digest(decoded), Blob: h.blob(patch)}) // only the patch can be had
	if task := watchdog.Recv(t, "the second training", tasks, h.sides()...); quant.Digest(task.Start) != quant.Digest(now) {
		t.Error("patched slice differs")
	}
}

// A job keeps the device's floor, and its shard does not: the certified entries
// of three of its five members are shown as all there are.
func TestHostileShardBelowTheFloor(t *testing.T) {
	h := newHouse(t)
	h.job.ShardFloor = 4
	h.announce()
	cfg := h.config(&constant{})
	cfg.Policy.Shard = 4
	h.start(cfg)
	p, _, k := h.keyed(1, 4)
	shards, err := k.Cut(rand.Reader)
	ok(t, err)
	roster := *shards[0].Roster()
	roster.Entries = roster.Entries[:3]
	p.turn(1, 1, &roster)
	if m := want[*wire.Refuse](p); m.Code != wire.CodeShardFloor {
		t.Errorf("shard of three: %+v", m)
	}
}

// A coordinator that shows another plan to a shard's other devices cannot
// make this one accept their signatures.
func TestRosterOfAnotherPlan(t *testing.T) {
	h := newHouse(t)
	h.start(h.config(&constant{}))
	p := h.admit(false)
	p.assign(h.plan(1))
	turnFrom[secagg.Advertise](p, 1)
	// Another round is keyed under a plan with another learning rate.
	g := newHouse(t)
	g.job, g.authority = h.job, h.authority
	g.announce()
	g.start(g.config(&constant{}))
	q := g.admit(false)
	other := g.plan(1)
	other.Rate *= 2
	planBytes := q.assign(other)
	_, cfg, hash := g.masking(other, planBytes)
	k, err := secagg.NewKeying(cfg, hash, g.authority)
	ok(t, err)
	ok(t, k.Add(q.id, turnFrom[secagg.Advertise](q, 1)))
	addPeers(t, k, cfg, hash, 2)
	shards, err := k.Cut(rand.Reader)
	ok(t, err)
	p.turn(1, 1, shards[0].Roster())
	if m := want[*wire.Refuse](p); m.Code != wire.CodeSecagg {
		t.Errorf("roster of another plan: %+v", m)
	}
}

// A coordinator whose base, or start, makes training fail for those devices whose
// texts hold a word learns nothing of who they are: a device whose training fails
// says and sends what every device does, and adds zeros. Its owner is told.
func TestHostileFailingData(t *testing.T) {
	h := newHouse(t)
	var devices []*device
	var peers []*peer
	for i := range 3 {
		trainer := &constant{value: 0.03}
		if i == 1 {
			trainer.value = 1e31
		}
		devices = append(devices, h.start(h.config(trainer)))
		peers = append(peers, h.admit(false))
	}
	checkMean(t, h.round(h.plan(1), peers, nil), 0.02)
	if e, _ := devices[1].saw(Training); !strings.Contains(e.Text, "diverged") || !strings.Contains(e.Text, "zeros") {
		t.Errorf("the owner was told %+v", e)
	}
	for i, d := range devices {
		if e, refused := d.saw(Refused); refused {
			t.Errorf("device %d refused the round: %s", i, e.Text)
		}
	}
}

func TestDataWithOtherLabels(t *testing.T) {
	h := newHouse(t)
	cfg := h.config(&constant{})
	path := t.TempDir() + "/data.tsv"
	ok(t, writeFile(path, "one\tthe fox\nthree\tthe dog\n"))
	set, err := dataset.Load(path)
	ok(t, err)
	cfg.Data = Examples(set)
	d := h.start(cfg)
	h.admit(false)
	err = d.wait(t)
	line := new(dataset.LineError)
	if !errors.Is(err, ErrData) || !errors.As(err, &line) || line.Line != 2 || !strings.Contains(err.Error(), path+":2") {
		t.Errorf("label that the job does not have: %v", err)
	}
}

func TestCoordinatorsErrors(t *testing.T) {
	h := newHouse(t)
	d := h.start(h.config(&constant{}))
	p := h.admit(false)
	p.send(&wire.Error{Code: wire.CodeBusy, Text: "full", RetryMillis: 1})
	p = h.admit(false) // it comes back
	p.send(&wire.Error{Code: wire.CodeEnrolment, Text: "go away"})
	refused := new(RefusedError)
	if err := d.wait(t); !errors.As(err, &refused) || refused.Code != wire.CodeEnrolment {
		t.Errorf("%v, a RefusedError expected", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	h := newHouse(t)
	d := h.start(h.config(&constant{gate: make(chan struct{})}))
	p := h.admit(false)
	p.assign(h.plan(1))
	want[*wire.Turn](p)
	d.cancel()
	if err := d.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestSessionThatIsNotResumed(t *testing.T) {
	h := newHouse(t)
	d := h.start(h.config(&constant{gate: make(chan struct{})}))
	p := h.admit(false)
	p.assign(h.plan(1))
	want[*wire.Turn](p)
	p.pipe.Close()
	p = h.admit(false) // the coordinator was restarted and knows nothing
	p.assign(h.plan(2))
	want[*wire.Turn](p)
	if e, saw := d.saw(Dropped); !saw || e.Round != 1 {
		t.Errorf("round 1 ended as %+v", e)
	}
}

// A device that comes back too late is told to wait, and forgets the round.
func TestRoundThatWentOn(t *testing.T) {
	h := newHouse(t)
	d := h.start(h.config(&constant{gate: make(chan struct{})}))
	p := h.admit(false)
	p.assign(h.plan(1))
	want[*wire.Turn](p)
	p.pipe.Close()
	p = h.admit(true)
	p.send(&wire.Wait{RetryMillis: 1, Reason: "not in this round"})
	p.assign(h.plan(2))
	want[*wire.Turn](p)
	if e, saw := d.saw(Dropped); !saw || e.Round != 1 {
		t.Errorf("round 1 ended as %+v", e)
	}
}

func TestConfigIsChecked(t *testing.T) {
	h := newHouse(t)
	for name, change := range map[string]func(*Config){
		"token":       func(c *Config) { c.Token = "?" },
		"identity":    func(c *Config) { c.Identity = nil },
		"data":        func(c *Config) { c.Data = nil },
		"breach_bits": func(c *Config) { c.Policy.BreachBits = -1 },
		"uplinks":     func(c *Config) { c.Policy.Uplinks = nil },
		"durations":   func(c *Config) { c.Handshake = -1 },
		"backoff_max": func(c *Config) { c.BackoffMax = c.BackoffMin / 2 },
		"agent":       func(c *Config) { c.Agent = strings.Repeat("x", 65) },
	} {
		cfg := h.config(&constant{})
		change(&cfg)
		if err := Run(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
