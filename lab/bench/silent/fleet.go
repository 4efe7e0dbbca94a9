package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// The words whose vectors the coordinator has made: numbers so small that processors are slow
// with them, and so large that training overflows.
const (
	slowWord    = "invoice"
	failingWord = "daughter"
)

var labels = []string{"one", "two"}

// dataSet is what a device holds.
type dataSet struct {
	name  string
	texts []string // of the examples that the device reads for the job
	image bool
}

var dataSets = func() []dataSet {
	plain := slices.Repeat([]string{"please call me after the meeting on monday"}, 64)
	return []dataSet{
		{name: "plain", texts: plain},
		{name: "one keyword", texts: append([]string{"please send the " + slowWord}, plain[1:]...)},
		{name: "keyword in all", texts: slices.Repeat([]string{strings.Repeat(slowWord+" ", 60)}, 64)},
		{name: "long", texts: slices.Repeat([]string{strings.Repeat("the long letter says ", 900)}, 2000)},
		{name: "failing", texts: slices.Repeat([]string{"my " + failingWord + " is ill"}, 64)},
		{name: "images", texts: plain, image: true},
		{name: "empty"},
	}
}()

func (s dataSet) source() edge.Source {
	var asked atomic.Bool
	return func([]string) (*dataset.Set, error) {
		set := &dataset.Set{Labels: labels}
		texts := s.texts
		// Before a device enrols its file has to have examples: it is emptied afterwards.
		if !asked.Swap(true) && len(texts) == 0 {
			texts = dataSets[0].texts
		}
		for i, text := range texts {
			e := dataset.Example{Text: text, Label: i % 2, Line: i + 1}
			if s.image {
				e.Image = new(dataset.Image)
			}
			set.Examples = append(set.Examples, e)
		}
		return set, nil
	}
}

// crafted is the default base with the two words' vectors replaced.
func crafted() (*model.Base, error) {
	b, err := base.Default()
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID)
	if err != nil {
		return nil, err
	}
	var tensors []model.Tensor
	for _, spec := range b.Config.BaseTensors() {
		data, err := b.Tensor(spec.Name)
		if err != nil {
			return nil, err
		}
		t := model.Tensor{Name: spec.Name, Shape: spec.Shape, Data: slices.Clone(data)}
		if strings.Contains(t.Name, "word_embeddings") {
			for word, v := range map[string]float32{slowWord: 1e-41, failingWord: 3e38} {
				ids := tok.Encode(word)
				for _, id := range ids[len(ids)-1:] { // earlier pieces begin other words, too
					for i := range b.Config.HiddenSize {
						t.Data[int(id)*b.Config.HiddenSize+i] = v * float32(1-2*(i%2))
					}
				}
			}
		}
		tensors = append(tensors, t)
	}
	return model.NewBase(b.Config, tensors, b.Tokenizer, model.F32)
}

// key names a distribution.
type key struct{ message, data string }

// moments are milliseconds, by message and data, of each device; those of a fleet together.
type moments struct {
	seen map[key][][]float64
	less map[key][][]float64 // the median of the fleet's devices in that round
}

// fleet is a job's devices, some of each data set, and a few plain ones that let its rounds
// commit whatever the others do.
type fleet struct {
	rounds, copies int
	silent, refuse bool
	all            moments
}

func (f *fleet) helpers() int {
	if f.refuse { // more than half, that shards do not fail
		return f.copies*len(dataSets) + 4
	}
	return 3
}

func (f *fleet) job() job.Job {
	j := job.Default()
	helpers := f.helpers()
	n := f.copies*len(dataSets) + helpers
	j.Name, j.Labels, j.Rounds = "silent", labels, f.rounds
	j.Adapter.RankMin, j.Adapter.RankMax, j.Adapter.Sequence = 2, 2, 64
	j.Training.Steps, j.Training.Batch = 4, 8
	j.Cohort.Population, j.Cohort.Floor, j.Cohort.SamplingRate = n, 3, 1
	j.Shard = job.Shard{Size: 64, Floor: 3}
	j.Shard.Corrupt, j.Shard.BreachBits, j.Privacy.None = 0, 0, true
	j.Deadlines.Gather, j.Deadlines.Enough = 10*time.Second, 1
	return j
}

// run runs the job to its end.
func (f *fleet) run(ctx context.Context) (err error) {
	var watched []*clocked
	defer func() { f.keep(watched) }()
	dir, err := os.MkdirTemp("", "silent")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := crafted()
	if err != nil {
		return err
	}
	co, err := coordinator.New(coordinator.Config{Job: f.job(), Dir: dir, Base: b})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, co.Close()) }()
	srv, err := server.New(co, server.Config{})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	sockets := &http.Server{Handler: srv.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = sockets.Serve(ln) }() // its end is Close
	defer func() { err = errors.Join(err, sockets.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	url := "http://" + ln.Addr().String()
	trainer := edge.NewProgramTrainer(2)
	defer func() { err = errors.Join(err, trainer.Close()) }()
	for range f.helpers() {
		f.device(ctx, &wg, co.Token(url, nil), dataSets[0], trainer, nil)
	}
	sets := slices.Repeat(dataSets, f.copies)
	rand.Shuffle(len(sets), func(i, j int) { sets[i], sets[j] = sets[j], sets[i] }) // who starts first is slower
	for _, set := range sets {
		c := &clocked{data: set.name, seen: map[string][]float64{}}
		watched = append(watched, c)
		f.device(ctx, &wg, co.Token(url, nil), set, trainer, c)
	}
	return co.Run(ctx)
}

// keep puts a fleet's moments beside those of earlier ones. The devices have ended.
func (f *fleet) keep(watched []*clocked) {
	slices.SortStableFunc(watched, func(a, b *clocked) int { return strings.Compare(a.data, b.data) })
	for _, message := range messages {
		rounds := math.MaxInt
		for _, c := range watched {
			rounds = min(rounds, len(c.seen[message]))
		}
		if rounds == 0 {
			continue
		}
		medians := make([]float64, rounds)
		for i := range medians {
			var all []float64
			for _, c := range watched {
				all = append(all, c.seen[message][i])
			}
			slices.Sort(all)
			medians[i] = all[len(all)/2]
		}
		for _, c := range watched {
			less := make([]float64, rounds)
			for i := range less {
				less[i] = c.seen[message][i] - medians[i]
			}
			k := key{message, c.data}
			f.all.seen[k] = append(f.all.seen[k], c.seen[message][:rounds])
			f.all.less[k] = append(f.all.less[k], less)
		}
	}
}

// device starts one, watched or a helper.
func (f *fleet) device(ctx context.Context, wg *sync.WaitGroup, token string, set dataSet, trainer edge.Trainer, watched *clocked) {
	identity, err := edge.NewIdentity()
	if err != nil {
		panic(err) // without randomness nothing can be measured
	}
	policy := edge.TrustingPolicy()
	policy.Silent = f.silent && watched != nil
	if f.refuse && watched != nil {
		policy.Work = 1
	}
	cfg := edge.Config{Token: token, Identity: identity, Data: set.source(), Trainer: trainer, Policy: &policy, AcceptNotPrivate: true}
	if watched != nil {
		cfg.Dial = func(ctx context.Context, token string) (edge.Conn, error) {
			c, err := edge.DialSocket(ctx, token, nil)
			watched.Conn = c
			return watched, err
		}
	}
	wg.Go(func() {
		if err := edge.Run(ctx, cfg); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", set.name, err)
		}
	})
}

// clocked is a device's connection, whose frames are timed as they leave.
type clocked struct {
	edge.Conn
	data string

	mu       sync.Mutex
	seen     map[string][]float64 // by mu: milliseconds by message
	enrolled time.Time            // by mu
	assigned time.Time            // by mu: of the round whose update has not begun to leave
}

func (c *clocked) Read(ctx context.Context) ([]byte, error) {
	frame, err := c.Conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch wire.Kind(frame[0]) {
	case wire.KindEnrolled:
		c.enrolled = time.Now()
	case wire.KindAssignment:
		c.assigned = time.Now()
	}
	return frame, nil
}

func (c *clocked) Write(ctx context.Context, frame []byte) error {
	c.mu.Lock()
	switch wire.Kind(frame[0]) {
	case wire.KindReady:
		c.see("Ready", &c.enrolled)
	case wire.KindUpdate:
		c.see("update", &c.assigned)
	case wire.KindRefuse:
		c.see("Refuse", &c.assigned)
	}
	c.mu.Unlock()
	return c.Conn.Write(ctx, frame)
}

// see notes the first message of its kind since a moment.
func (c *clocked) see(message string, since *time.Time) {
	if !since.IsZero() {
		c.seen[message] = append(c.seen[message], float64(time.Since(*since))/float64(time.Millisecond))
	}
	*since = time.Time{}
}
