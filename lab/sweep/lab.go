package sweep

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm/program"
)

// Lab holds what all simulations of a grid share. It belongs to one goroutine.
type Lab struct {
	Base    *model.Base
	Workers int    // clients that train side by side, at least 1
	Engine  string // of the local steps: bits differ between engines
	// Trainer and Compile are the engine's (simulate.Config); nil: the compiled program.
	Trainer edge.Trainer
	Compile program.Compile
	Version string // of this program
	// Data yields a labelled file with a part held out for validation and one for
	// test ([Source.Divide]); of an empty path, generated invoices without the training
	// part. It is asked several times a run: it is to read each file once.
	Data func(of Source) (*Data, error)
	// Evaluators score adapters, one on each set; they share the base.
	Evaluators func(base *model.Base, layout *model.Layout, sequence int, sets ...*dataset.Set) ([]Evaluator, error)
	// Start reads the adapter that a job names as its start (adapter.start); nil: none can
	// be named.
	Start func(j job.Job, base *model.Base) (*model.Adapter, error)
	// Collect lets cohorts contribute elsewhere; nil: Workers of this process.
	Collect simulate.Collect
	// Begin is called before the rounds of a run: done of them were made before it was
	// interrupted, and others are the states of runs in its folder that were interrupted
	// under other settings of the base, the engine, the data or the program's defaults.
	// May be nil.
	Begin func(p Point, done int, others []string)
	// Progress is called after each round of a run; may be nil.
	Progress func(p Point, r simulate.Round, of int)
	// Doing is called before what may take long besides (simulate.Config.Doing), and before the last adapter is
	// scored on the test part. May be nil.
	Doing func(what string)

	packed     *model.Base // Base as a job with a base_format asks for it
	baseSum    string      // SHA-256 of Base, hexadecimal; "" until it is asked for
	references map[referenceKey]References
}

// baseFor is Base as a job asks for it.
func (l *Lab) baseFor(j job.Job) (*model.Base, error) {
	if j.CheckBase(l.Base) == nil {
		return l.Base, nil
	}
	if l.packed == nil {
		var err error
		if l.packed, err = j.OpenBase(l.Base); err != nil {
			return nil, err
		}
	}
	return l.packed, nil
}

// Data is a labelled file, divided.
type Data struct {
	Name   string
	SHA256 string // of all that was read, hexadecimal; "" for generated data
	Labels []string
	// Train is divided over the clients; nil: every client's documents are
	// generated.
	Train      *dataset.Set
	Validation *dataset.Set // chooses the rank
	Test       *dataset.Set // reports
	// Clients are the examples of Train that each client has, where a partition's file says
	// so; nil: they are divided by user or label.
	Clients [][]int
}

// Evaluator scores adapters on labelled data that no client holds.
type Evaluator interface {
	metric.Evaluator
	Score(ctx context.Context, a *model.Adapter, rank int) (Score, error)
}

// Score holds an adapter's scores at a rank, each in [0, 1].
type Score struct {
	Accuracy float64            // of answers exact match
	MacroF1  float64            // of labels
	ANLS     float64            // of answers: the mean over their sources of each one's mean; of TabFact accuracy, its own metric
	Sources  map[string]float64 // each source's own figure, where there are several

	// Of words and of characters of what is transcribed, whose Accuracy is 1 less WordErrors;
	// nil for other tasks.
	WordErrors, CharacterErrors *float64
}

// secret is what everything but the division of the data is drawn from.
func (s Settings) secret() []byte {
	b := Seed(s.Seed)
	binary.LittleEndian.PutUint64(b, uint64(s.Trial))
	return b
}

// Seed returns the 32 bytes that a setting's seed stands for everywhere in a run.
func Seed(seed uint64) []byte { return binary.LittleEndian.AppendUint64(make([]byte, 24), seed) }

// Setup is a run that is ready to be made.
type Setup struct {
	Data       *Data
	Config     simulate.Config
	Job        job.Job
	Division   *Division // nil: every client's examples are generated
	Validation Evaluator
	Test       Evaluator
}

// job loads the data and fills in the job over it.
func (l *Lab) job(s Settings) (*Data, job.Job, error) {
	d, err := l.Data(s.Source())
	if err != nil {
		return nil, job.Job{}, err
	}
	if !s.NamesTask() { // what a task says of its labels is checked before the base is looked at
		s.Job = clone(s.Job)
		s.Job["task"] = l.Base.Config.DefaultTask().String()
	}
	if named, want := s.Job["task"], model.TaskTranscribe.String(); d.Validation.Form() == dataset.FormTranscripts && named != want {
		return nil, job.Job{}, badSetting("data: %s holds %s, and the task is %v: set task to %s", d.Name, dataset.FormTranscripts.Description(), named, want)
	}
	name, _ := s.Job["task"].(string)
	if kind, err := model.ParseTask(name); err == nil { // before the job misses labels that such data have not
		if err := d.fits(kind, l.Base.Config); err != nil {
			return nil, job.Job{}, err
		}
	}
	j, err := s.JobOf(d.Name, d.Labels)
	return d, j.ForBase(l.Base.Config), err
}

// fits refuses data that the base does not read or the task does not take, and says what
// would do.
func (d *Data) fits(kind model.TaskKind, base model.Config) error {
	kind = base.Settled(kind)
	form := d.Validation.Form()
	want := task.For(form)
	switch pictures, sounds := form == dataset.FormPictures, form == dataset.FormRecordings || form == dataset.FormTranscripts; {
	case sounds != base.Hears() && sounds:
		return badSetting("data: %s holds %s, and the base, a %s, reads none: give the folder of a hubert or a wav2vec2 as --base, and set task to %s",
			d.Name, form.Description(), base.ModelType, want)
	case sounds != base.Hears():
		return badSetting("data: %s holds %s, and the base, a %s, reads recordings: give recordings as data, or another base",
			d.Name, form.Description(), base.ModelType)
	case pictures && !base.Sees():
		return badSetting("data: %s holds %s, and the base, a %s, reads texts: give the folder of a vit as --base, and set task to %s",
			d.Name, form.Description(), base.ModelType, want)
	case !pictures && base.Sees():
		return badSetting("data: %s holds %s, and the base, a %s, reads images: give images as data, or a base that reads texts",
			d.Name, form.Description(), base.ModelType)
	case form == dataset.FormQuestions && !task.Accepts(kind, form) && !base.Generates():
		return badSetting("data: %s holds %s, and the base, a %s, writes no answers: give --base starling/documents, which does, "+
			"or set task to %s, which finds them in the document", d.Name, form.Description(), base.ModelType, model.TaskSpan)
	case (form == dataset.FormPrompts || form == dataset.FormTalks) && !base.Causal():
		return badSetting("data: %s holds %s, and the base, a %s, does not write on: give the folder of a small language model as "+
			"--base, one that starling base fetch HuggingFaceTB/SmolLM2-135M has fetched, say", d.Name, form.Description(), base.ModelType)
	case !task.Accepts(kind, form):
		return badSetting("data: %s holds %s, and the task is %s: set task to %s", d.Name, form.Description(), kind, want)
	}
	return nil
}

// Check refuses what Make would: settings that do not fit, data that cannot be
// read, a budget that its rounds cannot keep. It runs nothing.
func (l *Lab) Check(s Settings) error {
	_, j, err := l.job(s)
	if err != nil {
		return err
	}
	base, err := l.baseFor(j)
	if err != nil {
		return err
	}
	core, err := core.New(j, base, s.secret())
	if err != nil {
		return err
	}
	start, err := l.start(j, base)
	if len(s.First) > 0 { // a fresh one stands for what the run before comes to
		start, err = l.fresh(s)
	}
	if err != nil || start == nil {
		return err
	}
	return core.StartFrom(start)
}

// fresh is an adapter as the run before one that names a first has them.
func (l *Lab) fresh(s Settings) (*model.Adapter, error) {
	before, err := s.Before()
	if err == nil {
		err = l.Check(before)
	}
	if err != nil {
		return nil, fmt.Errorf("first: %w", err)
	}
	_, j, err := l.job(before)
	if err != nil {
		return nil, err
	}
	layout, err := model.NewLayout(l.Base.Config, j.Method(), len(j.Labels))
	if err != nil {
		return nil, err
	}
	return model.NewAdapter(layout, 0), nil
}

// start is the adapter that the job's first round begins with; nil: a fresh one.
func (l *Lab) start(j job.Job, base *model.Base) (*model.Adapter, error) {
	if j.Adapter.Start == "" {
		return nil, nil
	}
	if l.Start == nil {
		return nil, badSetting("adapter.start is %q: no adapter can be read here", j.Adapter.Start)
	}
	return l.Start(j, base)
}

// Setup loads the data, divides it and fills in the job.
func (l *Lab) Setup(s Settings) (*Setup, error) {
	d, job, err := l.job(s)
	if err != nil {
		return nil, err
	}
	population, how, spread, err := d.population(s)
	if err != nil {
		return nil, err
	}
	base, err := l.baseFor(job)
	if err != nil {
		return nil, err
	}
	layout, err := model.NewLayout(base.Config, job.Method(), len(job.Labels))
	if err != nil {
		return nil, err
	}
	start, err := l.start(job, base)
	if err != nil {
		return nil, err
	}
	validation := d.Validation
	if s.Validation > 0 && len(validation.Examples) > s.Validation {
		validation = &dataset.Set{Name: validation.Name, Labels: validation.Labels, Examples: validation.Examples[:s.Validation]}
	}
	evaluators, err := l.Evaluators(base, layout, job.Adapter.Sequence, validation, d.Test)
	if err != nil {
		return nil, err
	}
	var search *accounting.Search
	if s.AccountSearch != "" {
		by, err := accounting.ParseSearch(s.AccountSearch)
		if err != nil {
			return nil, badSetting("account_search is %w", err)
		}
		search = &by
	}
	out := &Setup{Data: d, Job: job, Division: spread, Validation: evaluators[0], Test: evaluators[1]}
	out.Config = simulate.Config{
		Job: job, Base: base, Start: start, Population: population, Unclipped: s.Unclipped, Dropout: s.Dropout, Slow: s.Slow, Data: how, Seed: s.secret(), Workers: max(1, l.Workers), Collect: l.Collect,
		Trainer: l.Trainer, Compile: l.Compile, Engine: l.Engine,
		Search: search, Evaluator: out.Validation, Every: s.Every, Ranks: s.Ranks, Doing: l.Doing,
	}
	return out, nil
}
