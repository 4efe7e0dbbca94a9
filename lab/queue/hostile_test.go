package queue_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/lab/queue"
	"github.com/starling-fl/starling/simulate"
)

// near is a worker's connection to a broker of this process.
func near(t testing.TB, b *queue.Broker) *queue.Broker {
	t.Helper()
	w, err := queue.ConnectWorker(t.Context(), b.URL, queue.Access{})
	ok(t, err)
	t.Cleanup(func() { ok(t, w.Close()) })
	return w
}

// Who reaches the cluster as a worker does, but has not the key of the run, makes no result
// of it: a forged one was taken for a round's.
func TestHostileStrangerForgesResults(t *testing.T) {
	cfg := config(t)
	want := play(t, cfg)
	b := embed(t, "127.0.0.1:0")
	stranger := near(t, b)
	stranger.Strange()
	r := queue.NewReducer(b, "v", "e", nil)
	ctx := watchdog.Context(t)
	cfg.Collect = func(c context.Context, a *simulate.Assignment, n int, put func(int) (simulate.Client, error)) (*simulate.Tally, error) {
		flood, stop := context.WithCancel(c)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for number := uint64(0); flood.Err() == nil; number = (number + 1) % 64 {
				for _, sealed := range []bool{false, true} {
					for _, o := range forged(a, n, number, r.Run()) {
						_ = stranger.Answer(flood, r.Run(), o, sealed) // it may end in the middle of one
					}
				}
			}
		}()
		defer func() { stop(); <-done }()
		return r.Collect(c, a, n, put)
	}
	work(t, near(t, b), &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	if got := play(t, cfg); got != want {
		t.Errorf("beside a forger:\n%s\nin one process:\n%s", got, want)
	}
	ok(t, ctx.Err())
}

// forged are outcomes of an item's clients that nobody trained: a sum of zeros, and a failure.
func forged(a *simulate.Assignment, n int, number uint64, run string) []*queue.Outcome {
	zeros := &queue.Outcome{Number: number, Run: run, Sum: queue.Varints(make([]int64, a.Size()))}
	from := int(number) % 5 * 16
	for at := from; at < min(n, from+16); at++ {
		zeros.Places, zeros.Norms = append(zeros.Places, at), append(zeros.Norms, []float64{1})
	}
	return []*queue.Outcome{zeros, {Number: number, Run: run, Failed: "no"}}
}

// A worker that has the key and sends what cannot be, or nothing, costs its items' time: they
// are handed out again. One such result ended the run.
func TestHostileWorkerSendsNonsense(t *testing.T) {
	cfg := config(t)
	cfg.Job.Rounds = 1
	want := play(t, cfg)
	b := embed(t, "127.0.0.1:0")
	liar := near(t, b)
	r := queue.NewReducer(b, "v", "e", nil)
	r.Patience = 300 * time.Millisecond
	var size, dense atomic.Int64
	cfg.Collect = func(c context.Context, a *simulate.Assignment, n int, put func(int) (simulate.Client, error)) (*simulate.Tally, error) {
		size.Store(int64(a.Size()))
		for m := int64(1); ; m++ { // the least that is too much in all coordinates at once
			sum := make([]int64, a.Size())
			for i := range sum {
				sum[i] = m
			}
			if err := a.CheckSum(sum, 1); err != nil {
				dense.Store(m)
				if !strings.Contains(err.Error(), "norm") {
					t.Errorf("%d in all coordinates: %v", m, err)
				}
				break
			}
		}
		return r.Collect(c, a, n, put)
	}
	result := playing(t, cfg)
	ctx := watchdog.Context(t)
	lies := []func(o *queue.Outcome) (sealed bool){
		func(o *queue.Outcome) bool { o.Failed = "I will not"; return true },
		func(o *queue.Outcome) bool { // beyond what so many clients can come to
			sum := make([]int64, size.Load())
			sum[0] = 1 << 40
			o.Sum = queue.Varints(sum)
			return true
		},
		func(o *queue.Outcome) bool { // within each coordinate's bound, beyond the norm's
			sum := make([]int64, size.Load())
			for i := range sum {
				sum[i] = dense.Load() * int64(len(o.Places))
			}
			o.Sum = queue.Varints(sum)
			return true
		},
		func(o *queue.Outcome) bool { o.Sum = o.Sum[:3]; return true },
		func(o *queue.Outcome) bool { o.Norms[0] = []float64{-1}; return true },
		func(o *queue.Outcome) bool { o.Places[0]++; return true },
		func(*queue.Outcome) bool { return false }, // not sealed: nobody can say what it answers
	}
	for i, lie := range lies {
		m, it, err := liar.Take(ctx)
		if err != nil {
			t.Fatalf("lie %d: %v", i, err)
		}
		o := &queue.Outcome{Number: it.Number, Run: it.Run, Worker: "liar", Sum: queue.Varints(make([]int64, size.Load()))}
		for _, c := range it.Clients {
			o.Places, o.Norms = append(o.Places, c.Place), append(o.Norms, []float64{1})
		}
		sealed := lie(o)
		ok(t, liar.Answer(ctx, it.Run, o, sealed))
		ok(t, m.Ack())
	}
	m, _, err := liar.Take(ctx) // taken, and no more was heard
	ok(t, err)
	ok(t, m.Ack())
	work(t, near(t, b), &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	if got := result(); got != want {
		t.Errorf("beside a liar:\n%s\nin one process:\n%s", got, want)
	}
}

// bent is a trainer whose every update is another.
type bent struct{ edge.Trainer }

func (b bent) Train(ctx context.Context, task edge.Task) ([]float32, error) {
	delta, err := b.Trainer.Train(ctx, task)
	for i := range delta {
		delta[i] = -delta[i]
	}
	return delta, err
}

// Of several workers one is within every bound: a result that is computed again tells, and
// names it.
func TestHostileWorkerIsNamed(t *testing.T) {
	cfg := config(t)
	b := embed(t, "127.0.0.1:0")
	own := edge.NewProgramTrainer(1)
	t.Cleanup(func() { ok(t, own.Close()) })
	for i := range 3 {
		w := &queue.Worker{Name: fmt.Sprintf("honest-%d", i), Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second}
		if i == 1 {
			tr := edge.NewProgramTrainer(1)
			t.Cleanup(func() { ok(t, tr.Close()) })
			w.Name, w.Trainer = "liar", bent{tr}
		}
		work(t, near(t, b), w)
	}
	cfg.Job.Rounds = 40 // until the liar has had an item
	r := queue.NewReducer(b, "v", "e", nil)
	r.Audit = queue.Audit{Share: 1, Trainer: own}
	cfg.Collect = r.Collect
	s, err := simulate.New(cfg)
	ok(t, err)
	defer s.Close()
	if _, err := s.Rounds(watchdog.Context(t)); err == nil || !strings.Contains(err.Error(), `worker "liar" lied`) {
		t.Errorf("a run with a liar: %v", err)
	}
}

// Audits change nothing where nobody lies, and are not all of the work.
func TestAuditsOfHonestWorkers(t *testing.T) {
	cfg := config(t)
	want := play(t, cfg)
	b := embed(t, "127.0.0.1:0")
	work(t, near(t, b), &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	own := edge.NewProgramTrainer(1)
	t.Cleanup(func() { ok(t, own.Close()) })
	r := queue.NewReducer(b, "v", "e", nil)
	r.Audit = queue.Audit{Share: 0.5, Trainer: own}
	cfg.Collect = r.Collect
	if got := play(t, cfg); got != want {
		t.Errorf("with audits:\n%s\nin one process:\n%s", got, want)
	}
}

// What a worker may do in the server that a simulation starts is what a worker does.
func TestHostileWorkersReach(t *testing.T) {
	b := embed(t, "127.0.0.1:0")
	c := near(t, b).Conn()
	for _, subject := range []string{
		"starling.items", "$JS.API.STREAM.DELETE.STARLING_ITEMS", "$JS.API.STREAM.PURGE.STARLING_RESULTS", "$JS.API.STREAM.CREATE.MINE",
		"$JS.API.CONSUMER.CREATE.STARLING_RESULTS.mine", "$O.starling-blobs.C.x", "$O.starling-blobs.M.x", "$KV.starling-runs.x",
	} {
		ok(t, c.Publish(subject, nil))
		ok(t, c.FlushTimeout(10*time.Second))
		if err := c.LastError(); err == nil || !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) {
			t.Errorf("%s: %v", subject, err)
		}
	}
	for _, subject := range []string{"starling.>", "starling.results.>", ">"} {
		s, err := c.SubscribeSync(subject)
		ok(t, err)
		ok(t, c.FlushTimeout(10*time.Second))
		if err := c.LastError(); err == nil || !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("reading %s: %v", subject, err)
		}
		_ = s.Unsubscribe() // the server has done so
	}
}

// What is in the store is not fetched beyond what it may be.
func TestHostileBlobs(t *testing.T) {
	b := embed(t, "127.0.0.1:0")
	large := make([]byte, 32<<20)
	sum := sha256.Sum256(large)
	_, err := b.Objects().PutBytes(t.Context(), fmt.Sprintf("%x", sum), large)
	ok(t, err)
	w := near(t, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = w.Fetch(t.Context(), sum, 1<<16)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "limit is 65536") {
		t.Errorf("32 MiB where 64 KiB may be: %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d MiB were taken for it", got>>20)
	}
	if got, err := w.Fetch(t.Context(), sum, 32<<20); err != nil || len(got) != 32<<20 {
		t.Errorf("as long as it may be: %d bytes, %v", len(got), err)
	}
}

// A worker is not started with half of what it was given.
func TestHostileKeys(t *testing.T) {
	b := embed(t, "127.0.0.1:0")
	address, key, _ := strings.Cut(b.URL, "#")
	for _, url := range []string{address, address + "#", address + "#" + key[1:], address + "#" + key + "A", address + "#!" + key[1:]} {
		if w, err := queue.ConnectWorker(t.Context(), url, queue.Access{}); err == nil || !strings.Contains(err.Error(), "key") {
			t.Errorf("%q: %v", url, err)
			if w != nil {
				ok(t, w.Close())
			}
		}
	}
}
