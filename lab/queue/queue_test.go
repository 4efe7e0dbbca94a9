package queue_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/queue"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm/program"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// config is a job over 70 clients: five items a round.
func config(t testing.TB) simulate.Config {
	t.Helper()
	base := tiny.Base(t, 16, 2, 16)
	var clients simulate.Each
	for i := range 70 {
		s := &dataset.Set{Labels: []string{"one", "two"}}
		for k := range i % 4 { // some have none
			s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprintf("fox %d %d", i, k), Label: (i + k) % 2})
		}
		clients = append(clients, s)
	}
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "test", []string{"one", "two"}, 3
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Sequence = 1, 2, 8
	j.Training.Steps, j.Training.Batch = 1, 2
	j.Cohort.Population, j.Cohort.Floor = len(clients), 3
	j.Shard.Floor, j.Shard.BreachBits = 3, 0
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000
	return simulate.Config{Job: j, Base: base, Population: clients, Seed: bytes.Repeat([]byte{7}, 32), Workers: 1}
}

// play makes a run: what it came to, adapter and rounds.
func play(t testing.TB, cfg simulate.Config) string {
	t.Helper()
	return playing(t, cfg)()
}

// playing makes a run beside the test, which waits for it with the function it returns.
func playing(t testing.TB, cfg simulate.Config) (result func() string) {
	t.Helper()
	type played struct {
		run string
		err error
	}
	done, ctx := make(chan played, 1), watchdog.Context(t)
	r, err := simulate.New(cfg)
	ok(t, err)
	go func() {
		result, err := r.Rounds(ctx)
		if err = errors.Join(err, r.Close()); err != nil {
			done <- played{err: err}
			return
		}
		b, err := model.EncodeAdapter(result.Adapter)
		done <- played{fmt.Sprintf("%x %+v", sha256.Sum256(b), result.Rounds), err}
	}()
	return func() string {
		t.Helper()
		p := watchdog.Recv(t, "the end of a run", done)
		ok(t, p.err)
		return p.run
	}
}

func embed(t testing.TB, listen string) *queue.Broker {
	t.Helper()
	b, err := queue.Embed(t.Context(), t.TempDir(), listen)
	ok(t, err)
	t.Cleanup(func() { ok(t, b.Close()) })
	return b
}

// work runs a worker until the test ends or it is stopped.
func work(t testing.TB, b *queue.Broker, w *queue.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, b) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			ok(t, watchdog.Recv(t, "the end of a worker", done))
		})
	}
	t.Cleanup(stop)
	return stop
}

// Workers that come, go and share the work come to what one process comes to.
func TestEqualToOneProcess(t *testing.T) {
	cfg := config(t)
	want := play(t, cfg)
	b := embed(t, "127.0.0.1:0")
	first := work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 2, AckWait: time.Second})
	var once sync.Once
	cfg.Progress = func(simulate.Round) {
		once.Do(func() { // after the first round another takes over, from its own connection
			far, err := queue.ConnectWorker(t.Context(), b.URL, queue.Access{})
			ok(t, err)
			t.Cleanup(func() { ok(t, far.Close()) })
			work(t, far, &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
			first()
		})
	}
	cfg.Collect = queue.NewReducer(b, "v", "e", nil).Collect
	if got := play(t, cfg); got != want {
		t.Errorf("over the queue:\n%s\nin one process:\n%s", got, want)
	}
}

// A store that forgot the base is given it again: a worker that comes later can begin.
func TestForgottenBlobsAreStoredAgain(t *testing.T) {
	cfg := config(t)
	want := play(t, cfg)
	b := embed(t, "127.0.0.1:0")
	first := work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	var once sync.Once
	cfg.Progress = func(simulate.Round) {
		once.Do(func() {
			first()
			blobs := b.Objects()
			all, err := blobs.List(t.Context())
			ok(t, err)
			for _, o := range all {
				ok(t, blobs.Delete(t.Context(), o.Name))
			}
			work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
		})
	}
	cfg.Collect = queue.NewReducer(b, "v", "e", nil).Collect
	if got := play(t, cfg); got != want {
		t.Errorf("over a store that forgets:\n%s\nin one process:\n%s", got, want)
	}
}

// stubborn is a trainer that hangs until its worker is stopped, the first few
// times: as a machine does that dies with items in hand.
type stubborn struct {
	edge.Trainer
	mu   sync.Mutex
	left int // by mu
	hung chan struct{}
}

func (s *stubborn) Train(ctx context.Context, task edge.Task) ([]float32, error) {
	s.mu.Lock()
	hang := s.left > 0
	s.left--
	s.mu.Unlock()
	if hang {
		s.hung <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Trainer.Train(ctx, task)
}

// An item whose worker stops in its middle is done by another, and counts once.
func TestItemsOfStoppedWorkersAreDone(t *testing.T) {
	cfg := config(t)
	want := play(t, cfg)
	b := embed(t, "")
	s := &stubborn{Trainer: edge.NewProgramTrainer(2), left: 2, hung: make(chan struct{}, 2)}
	defer s.Close()
	stop := work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 2, Trainer: s, AckWait: time.Second})
	cfg.Collect = queue.NewReducer(b, "v", "e", nil).Collect
	result := playing(t, cfg)
	watchdog.Recv(t, "an item in hand", s.hung)
	watchdog.Recv(t, "a second one", s.hung)
	stop()
	work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	if got := result(); got != want {
		t.Errorf("with stopped workers:\n%s\nin one process:\n%s", got, want)
	}
}

// A worker of another version, or with another engine, would compute other bits: it
// leaves items alone.
func TestAnotherVersionRefuses(t *testing.T) {
	cfg := config(t)
	b := embed(t, "")
	worked := make(chan int, 100)
	done := func(n int) { worked <- n }
	work(t, b, &queue.Worker{Version: "old", Engine: "e", Parallel: 1, AckWait: time.Second, Done: done})
	work(t, b, &queue.Worker{Version: "new", Engine: "f", Parallel: 1, AckWait: time.Second, Done: done})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	cfg.Collect = queue.NewReducer(b, "new", "e", nil).Collect
	r, err := simulate.New(cfg)
	ok(t, err)
	defer r.Close()
	if _, err := r.Rounds(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a round without a worker of its version: %v", err)
	}
	if len(worked) != 0 {
		t.Error("an item of another version or engine was done")
	}
}

// Two simulations of one name share a cluster and its workers, and each comes to what it
// comes to alone, though they differ in nothing but the seed.
func TestTwoRunsOnOneCluster(t *testing.T) {
	b := embed(t, "")
	work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 2, AckWait: time.Second})
	var alone [2]string
	var beside [2]func() string
	for i := range alone {
		cfg := config(t)
		cfg.Seed = bytes.Repeat([]byte{byte(7 + i)}, 32)
		alone[i] = play(t, cfg)
		cfg.Collect = queue.NewReducer(b, "v", "e", nil).Collect
		beside[i] = playing(t, cfg)
	}
	if alone[0] == alone[1] {
		t.Fatal("two seeds, one result")
	}
	for i, want := range alone {
		if got := beside[i](); got != want {
			t.Errorf("run %d beside another:\n%s\nalone:\n%s", i, got, want)
		}
	}
}

// What would fail on every worker ends the run with its reason.
func TestAFailureIsSaid(t *testing.T) {
	cfg := config(t)
	cfg.Compile = func(program.Spec) ([]byte, error) { return []byte("no program"), nil }
	b := embed(t, "")
	work(t, b, &queue.Worker{Version: "v", Engine: "e", Parallel: 1, AckWait: time.Second})
	cfg.Collect = queue.NewReducer(b, "v", "e", nil).Collect
	r, err := simulate.New(cfg)
	ok(t, err)
	defer r.Close()
	if _, err := r.Rounds(watchdog.Context(t)); err == nil || !strings.Contains(err.Error(), "a worker: ") {
		t.Errorf("a program that is none: %v", err)
	}
}

func TestStrangersAreKeptOut(t *testing.T) {
	b := embed(t, "127.0.0.1:0")
	token := b.URL[len("nats://"):strings.Index(b.URL, "@")]
	if _, err := queue.ConnectWorker(t.Context(), strings.Replace(b.URL, token+"@", "", 1), queue.Access{}); err == nil {
		t.Error("a stranger without the token was let in")
	}
	if _, err := queue.ConnectWorker(t.Context(), b.URL, queue.Access{Cert: "x"}); err == nil {
		t.Error("a certificate without its key was taken")
	}
}
