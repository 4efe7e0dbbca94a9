package edge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/wasm"
)

// said is a frame as the coordinator sees it come: what, how long, and when since the device
// was started.
type said struct {
	kind wire.Kind
	size int
	at   time.Duration
}

// watched is a device's end of a connection whose coordinator has a clock.
type watched struct {
	*pipe
	began time.Time

	mu     sync.Mutex
	frames []said // by mu
}

func (w *watched) Write(ctx context.Context, frame []byte) error {
	m, err := wire.Decode(frame, wire.FromDevice)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.frames = append(w.frames, said{m.Kind(), len(frame), time.Since(w.began)})
	w.mu.Unlock()
	return w.pipe.Write(ctx, frame)
}

// slow is a trainer whose steps last as long as its coordinator has made them last: longer for
// one token, and failing for another.
type slow struct {
	step    time.Duration
	keyword int32 // lasts longer by extra; 0: none
	extra   time.Duration
	trap    int32 // ends training; 0: none
}

func (s *slow) Train(ctx context.Context, t Task) ([]float32, error) {
	done := 0
	for b, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		last := s.step
		ids := b[0].I32
		if ids[0] == 2 { // [CLS], which examples that are made up do not begin with
			if s.trap != 0 && slices.Contains(ids, s.trap) {
				return nil, fmt.Errorf("step %d: %w", done, wasm.ErrTrap)
			}
			if s.keyword != 0 && slices.Contains(ids, s.keyword) {
				last += s.extra
			}
		}
		if err := sleep(ctx, last); err != nil {
			return nil, err
		}
		done++
		t.Progress(done, t.Steps)
	}
	return make([]float32, len(t.Start)), nil
}

func (*slow) Close() error { return nil }

// owner is what a device holds, and how long that takes to read with the coordinator's
// tokenizer.
type owner struct {
	texts   []string
	reading time.Duration
	broken  error
	image   bool
}

func (o owner) source(ctx context.Context) Source {
	return func([]string) (*dataset.Set, error) {
		if err := sleep(ctx, o.reading); err != nil {
			return nil, err
		}
		set := &dataset.Set{Labels: testLabels}
		for i, text := range o.texts {
			e := dataset.Example{Text: text, Label: i % 2, Line: i + 1}
			if o.image {
				e.Image = new(dataset.Image)
			}
			set.Examples = append(set.Examples, e)
		}
		return set, o.broken
	}
}

// owners are those whom a coordinator would like to tell apart.
func owners() map[string]owner {
	plain := slices.Repeat([]string{"the dog"}, 8)
	return map[string]owner{
		"plain":           {texts: plain, reading: 30 * time.Millisecond},
		"one keyword":     {texts: append([]string{"the fox"}, plain[1:]...), reading: 31 * time.Millisecond},
		"slow to read":    {texts: plain, reading: 700 * time.Millisecond},
		"very long":       {texts: slices.Repeat([]string{strings.Repeat("the dog ", 999)}, 2000), reading: 20 * time.Second},
		"empty":           {},
		"one example":     {texts: plain[:1]},
		"not readable":    {broken: errors.New("line 7 is not an example")},
		"images":          {texts: plain, image: true},
		"traps":           {texts: slices.Repeat([]string{"a"}, 8)},
		"keyword, always": {texts: slices.Repeat([]string{"fox"}, 8)},
	}
}

// timed plays rounds against a device of an owner and returns what its coordinator saw.
func timed(t *testing.T, o owner, silent bool, extra time.Duration) (frames []said, told []Event) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ids := tokensOf(t, "fox a")
		cfg := h.config(&slow{step: 20 * time.Millisecond, keyword: ids[0], extra: extra, trap: ids[1]})
		cfg.Policy.Silent = silent
		if silent {
			cfg.Policy.Examples = 2 // which "one example" has not, and does not show
		}
		cfg.Data = o.source(t.Context())
		dial := cfg.Dial
		w := &watched{began: time.Now()}
		cfg.Dial = func(ctx context.Context, token string) (Conn, error) {
			c, err := dial(ctx, token)
			w.pipe = c.(*pipe)
			return w, err
		}
		d := h.start(cfg)
		p := h.admit(false)
		for round := range uint64(3) {
			plan := h.plan(round + 1)
			plan.Steps = 10
			h.alone(plan, p, 2)
			time.Sleep(10 * time.Second)
		}
		p.send(&wire.Finished{Version: 3})
		ok(t, d.wait(t))
		w.mu.Lock()
		defer w.mu.Unlock()
		frames = w.frames
		d.mu.Lock()
		defer d.mu.Unlock()
		told = d.events
	})
	return frames, told
}

// tokensOf are the ids of words in the base of the tests.
func tokensOf(t *testing.T, text string) []int32 {
	t.Helper()
	base := tinyBase(t)
	tok, err := tokenizer.ParseFor(base.Tokenizer, base.Config.VocabSize, base.Config.PadTokenID)
	ok(t, err)
	return tok.Encode(text)
}

// TestHostileTimer: a coordinator with a clock, whose tokenizer is slow with a word, whose base
// makes a step with it longer, or fail, learns neither of words nor of anything else in the data
// from when a device says something and how long what it says is: the frames of all owners are the
// same, to the nanosecond. Without silence it tells each from the next.
func TestHostileTimer(t *testing.T) {
	for _, extra := range []time.Duration{time.Millisecond, 5 * time.Millisecond, time.Minute} {
		var first []said
		for name, o := range owners() {
			frames, _ := timed(t, o, true, extra)
			if first == nil {
				first = frames
			}
			if !slices.Equal(frames, first) {
				t.Errorf("a word that takes %v: of %q the coordinator sees\n%v\nand of another\n%v", extra, name, frames, first)
			}
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"plain", "one keyword", "slow to read", "traps", "keyword, always"} {
		frames, _ := timed(t, owners()[name], false, 5*time.Millisecond)
		if other, same := seen[fmt.Sprint(frames)]; same {
			t.Errorf("without silence %q and %q look the same: this test sees nothing", name, other)
		}
		seen[fmt.Sprint(frames)] = name
	}
}

// TestHostileTokenizerProbe: a device is ready before a tokenizer that is slow with its texts has
// come to their end, and its owner alone is told of data that cannot be used.
func TestHostileTokenizerProbe(t *testing.T) {
	for name, o := range owners() {
		frames, told := timed(t, o, true, 0)
		at := slices.IndexFunc(frames, func(f said) bool { return f.kind == wire.KindReady })
		if at < 0 || frames[at].at != leastReading { // of sequences of eight tokens
			t.Errorf("%q: ready is message %d of %v, want it at %v", name, at, frames, leastReading)
		}
		unusable := slices.ContainsFunc(told, func(e Event) bool { return e.State == Preparing && strings.Contains(e.Text, "zeros") })
		if want := len(o.texts) < 2 || o.image; unusable != want {
			t.Errorf("%q: that its data is unusable the owner was told: %v", name, unusable)
		}
	}
}

// How long a device reads before it is ready follows from what the job announces.
func TestReadingTime(t *testing.T) {
	text := func(n int) []task.Column { return []task.Column{{Type: task.I32, Shape: []int{n}}} }
	picture := []task.Column{{Type: task.F32, Shape: []int{3, 224, 224}}}
	for _, c := range []struct {
		columns  []task.Column
		sequence uint32
		want     time.Duration
	}{
		{text(8), 8, leastReading}, {text(64), 64, 262144 * time.Microsecond}, {text(128), 128, 524288 * time.Microsecond},
		{text(512), 512, mostReading}, {text(65535), 65535, mostReading}, {picture, 197, mostReading}, {picture, 1, mostReading},
	} {
		if got := readingTime(c.columns, c.sequence); got != c.want {
			t.Errorf("sequences of %d: %v, want %v", c.sequence, got, c.want)
		}
	}
}

// three are devices whose updates are 0.02 in each value.
func (h *house) three(silent bool) (peers []*peer) {
	for range 3 {
		cfg := h.config(&constant{value: 0.02})
		cfg.Policy.Silent = silent
		h.start(cfg)
		peers = append(peers, h.admit(false))
	}
	return peers
}

// A silent device's update is worth as much as any: where training is done in time, it is what
// training came to.
func TestSilentUpdatesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.job.Rounds = measuredFor + 2
		h.announce()
		peers := h.three(true)
		for round := range uint64(measuredFor + 2) {
			checkMean(t, h.round(h.plan(round+1), peers, nil), 0.02)
		}
	})
}

// What a silent device tries on made-up examples is none of what it keeps between rounds. The
// adapter stays where it is here, so that all but the first round's update is made up for.
func TestSilentDuals(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			h.job.Rounds, h.job.Dual = measuredFor+2, 1
			h.announce()
			peers := h.three(silent)
			checkMean(t, h.round(h.plan(1), peers, nil), 0.02)
			for round := range uint64(measuredFor + 1) {
				for _, v := range h.round(h.plan(round+2), peers, nil) {
					if math.Abs(float64(v)) > 0.005 {
						t.Fatalf("silent %v, round %d: a value of %v, want about 0", silent, round+2, v)
					}
				}
			}
		})
	}
}

// A window is a quarter to a half more than what was measured, and one of eight lengths in each octave.
func TestWindow(t *testing.T) {
	columns := []task.Column{{Type: task.I32, Shape: []int{128}}}
	for _, whole := range []time.Duration{time.Millisecond, 17 * time.Millisecond, 3 * time.Second, 7 * time.Minute} {
		k := cost{whole: whole, step: whole / 4, steps: 3}
		c := Contribution{Task: Task{Spec: training.Spec{Steps: 11, Batch: 4}}}
		real := whole + 8*(whole/4)
		least, got := real+real/4+slack+k.reserve(), k.window(c, columns)
		if got < least || got > least+least/8 {
			t.Errorf("%v: %v, want at least %v and little more", whole, got, least)
		}
		if c.Units = 5; k.window(c, columns) < 5*(got-slack-k.reserve())*8/9-slack {
			t.Errorf("%v: five units have %v", whole, k.window(c, columns))
		}
	}
	if a, b := coarse8(1000), coarse8(1001); a != b || coarse8(a) != a || coarse8(0) != 0 || coarse8(7) != 7 {
		t.Errorf("%d and %d", a, b)
	}
	from := time.Now()
	for _, after := range []time.Duration{0, 1, beat - 1, beat, 3*beat + 7} {
		if m := nextBeat(from, from.Add(after)); m.Sub(from)%beat != 0 || m.Sub(from) <= after || m.Sub(from) > after+beat {
			t.Errorf("the beat after %v is %v", after, m.Sub(from))
		}
	}
}
