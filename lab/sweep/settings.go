package sweep

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/nearest"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// ErrSettings is a setting that cannot be simulated; the text names it.
var ErrSettings = errors.New("settings")

func badSetting(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrSettings, fmt.Errorf(format, args...))
}

// Settings are one simulation as data: two that are equal come to the same
// result, bit for bit, under the same engine. Keys stand in a sweep file as they
// do here; those of the job file stand under their dotted names.
type Settings struct {
	// Data is a labelled file; empty generates invoices for every client.
	Data string `json:"data" yaml:"data"`
	// Test is a labelled file of its own for the test part; empty holds a part of Data out.
	// Partition is a file that says which examples of Data each client has. MinPerClass
	// leaves out labels that fewer examples have.
	Test        string `json:"test,omitempty" yaml:"test"`
	Partition   string `json:"partition,omitempty" yaml:"partition"`
	MinPerClass int    `json:"min_per_class,omitempty" yaml:"min_per_class"`
	// Population is N, the registered clients of the deployment; SamplingRate is
	// the probability q of each one's coin in a round.
	Population   int     `json:"population" yaml:"population"`
	SamplingRate float64 `json:"sampling_rate" yaml:"sampling_rate"`
	// Cohort is the expected number of clients that are really trained in a round,
	// with the noise of q*N; 0 trains the true cohort. With the job's cohort.sampling fixed it
	// is exactly how many are drawn, and SamplingRate has no meaning.
	Cohort int `json:"cohort" yaml:"cohort"`
	// Alpha is the Dirichlet concentration that divides a file which names no users,
	// Examples the mean number of examples a client then holds.
	Alpha    float64 `json:"alpha" yaml:"alpha"`
	Examples int     `json:"examples" yaml:"examples"`
	// MinExamples leaves out clients of a file that hold fewer; IID then shuffles the
	// examples over all of them, each keeping its number.
	// Pooled makes all of them one client's, as where training is central; others hold the same.
	MinExamples int  `json:"min_examples,omitempty" yaml:"min_examples"`
	IID         bool `json:"iid,omitempty" yaml:"iid"`
	Pooled      bool `json:"pooled,omitempty" yaml:"pooled"`
	// Dropout is the probability with which a drawn client's update never arrives, each
	// by itself: it counts as zero, and the denominator stays.
	Dropout float64 `json:"dropout,omitempty" yaml:"dropout"`
	// Slow is the share of clients that are too slow for every round: their updates never arrive either.
	Slow float64 `json:"slow,omitempty" yaml:"slow"`
	// Seed seeds everything, the division of the data included.
	Seed uint64 `json:"seed" yaml:"-"`
	// Every is the number of rounds between two measurements; 0: only at the end.
	Every int `json:"every" yaml:"every"`
	// Ranks to measure then; empty: the round's.
	Ranks []int `json:"ranks,omitempty" yaml:"ranks"`
	// Validation bounds the texts that are scored each time, 0: all of them.
	Validation int `json:"validation" yaml:"validation"`
	// Unclipped clips no update, in a job without noise (privacy.none): the control that
	// says what noise and clipping cost. A device never sends one: simulations only.
	Unclipped bool `json:"unclipped,omitempty" yaml:"unclipped"`

	// AccountSearch counts the privacy of a search over settings: the distribution of its
	// number of runs (accounting.ParseSearch). Trial tells runs of one search and the same settings
	// apart: the data are divided alike, all else is drawn anew.
	AccountSearch string `json:"account_search,omitempty" yaml:"account_search"`
	Trial         int    `json:"trial,omitempty" yaml:"-"`

	// First are settings that a run before this one has otherwise, from whose adapter this one
	// starts: federated self-pretraining before questions. No privacy is counted over both.
	First map[string]any `json:"first,omitempty" yaml:"first"`
	start string         // the checkpoint of that run, once it is made

	// Job holds keys of the job file, nested; what it does not name has the job
	// file's default.
	Job map[string]any `json:"job,omitempty" yaml:"-"`
}

// FileSettings are the settings that name a labelled file or one beside it. If a file
// lies is its machine's business: tables say its name.
var FileSettings = []string{"data", "test", "partition"}

// DefaultSettings scale a million devices, sampled at 1 %, to a hundred.
func DefaultSettings() Settings {
	return Settings{Population: 1_000_000, SamplingRate: 0.01, Cohort: 100, Alpha: 1, Examples: 16, Every: 10, Validation: 400}
}

// Check names the first setting that is out of range.
func (s Settings) Check() error {
	// What the cohort may be goes by it.
	if name, is := s.sampling().(string); is {
		if err := job.CheckSampling(name); err != nil {
			return badSetting("%w", err)
		}
	}
	switch {
	case s.Population < 2 || s.Population > job.MaxPopulation:
		return badSetting("population is %d, must be in 2..%d", s.Population, job.MaxPopulation)
	case !(s.SamplingRate > 0 && s.SamplingRate <= 1):
		return badSetting("sampling_rate is %v, must be in (0, 1]", s.SamplingRate)
	case s.Cohort < 0 || s.Cohort > s.Population:
		return badSetting("cohort is %d, must be in 0..population = %d", s.Cohort, s.Population)
	case !(s.Alpha > 0) || math.IsInf(s.Alpha, 0):
		return badSetting("alpha is %v, must be positive", s.Alpha)
	case s.Examples < 1 || s.Examples > 1<<20:
		return badSetting("examples is %d, must be in 1..%d", s.Examples, 1<<20)
	case s.MinExamples < 0 || s.MinExamples > 1<<20:
		return badSetting("min_examples is %d, must be in 0..%d", s.MinExamples, 1<<20)
	case s.MinPerClass < 0 || s.MinPerClass > 1<<30:
		return badSetting("min_per_class is %d, must be in 0..%d", s.MinPerClass, 1<<30)
	case s.Data == "" && (s.Test != "" || s.Partition != "" || s.MinPerClass > 0):
		return badSetting("test, partition and min_per_class are about a file, and data names none: give data, or leave them out")
	case !(s.Dropout >= 0 && s.Dropout < 1):
		return badSetting("dropout is %v, must be in [0, 1)", s.Dropout)
	case !(s.Slow >= 0 && s.Slow < 0.5):
		return badSetting("slow is %v, must be in [0, 0.5)", s.Slow)
	case len(s.First) > 0 && !s.Unprotected():
		return badSetting("first names a run before this one, and the privacy of two runs is not counted together: set privacy.none, or start from the other's checkpoint (adapter.start)")
	case s.Every < 0 || s.Validation < 0:
		return badSetting("every is %d and validation %d, must not be negative", s.Every, s.Validation)
	case s.Fixed() && (s.Cohort < 1 || s.Cohort == 1 && !s.Unprotected()):
		return badSetting("cohort.sampling is fixed and cohort %d: say how many of the %d clients a round draws (cohort, or cohort.size "+
			"in a job file), at least 2, or 1 with privacy.none", s.Cohort, s.Population)
	case s.Cohort > 0 && !s.Fixed() && float64(s.Cohort) > s.SamplingRate*float64(s.Population):
		return badSetting("cohort is %d, the true one sampling_rate*population = %v: nothing is left to scale; leave sampling_rate out, or set cohort: 0 for the true one",
			s.Cohort, s.SamplingRate*float64(s.Population))
	}
	if len(s.First) > 0 {
		first, err := s.Before()
		if err == nil {
			err = first.Check()
		}
		if err != nil {
			return badSetting("first: %w", err)
		}
	}
	return nil
}

// Before are the settings of the run that First speaks of.
func (s Settings) Before() (Settings, error) {
	if _, starts := lookup(s.Job, "adapter.start"); starts {
		return s, badSetting("the run starts from that before it, and adapter.start is given too")
	}
	before := s
	before.First = nil
	for _, key := range slices.Sorted(maps.Keys(s.First)) {
		c, err := newChange(key, s.First[key])
		if err != nil {
			return s, err
		}
		before = c(before)
	}
	return before, nil
}

// Fixed reports whether every round draws exactly Cohort clients, without replacement.
func (s Settings) Fixed() bool { return s.sampling() == "fixed" }

// Unprotected reports whether the job promises no privacy, in either spelling of a job file.
func (s Settings) Unprotected() bool {
	none, _ := lookup(s.Job, "privacy.none")
	return none == true || s.Job["privacy"] == "none"
}

// NamesClipping reports whether the job says how updates are clipped.
func (s Settings) NamesClipping() bool {
	_, norm := lookup(s.Job, "privacy.clip_norm")
	_, byRank := lookup(s.Job, "privacy.clip_by_rank")
	return norm || byRank
}

func (s Settings) sampling() any {
	sampling, _ := lookup(s.Job, "cohort.sampling")
	return sampling
}

// WithTrueCohort is the settings with a cohort that is the true one said as such.
func (s Settings) WithTrueCohort() Settings {
	if s.Fixed() {
		s.SamplingRate = 1
	} else if float64(s.Cohort) == s.SamplingRate*float64(s.Population) {
		s.Cohort = 0
	}
	return s
}

// ID names the settings as they are spelled: the same for the same settings only, with
// the same paths. What runs go by is [Lab.ID].
func (s Settings) ID() (string, error) {
	b, err := json.Marshal(s.named()) // maps are written in the order of their keys
	if err != nil {
		return "", fmt.Errorf("settings: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// Arithmetic is the class of arithmetic that the job names for its training programs;
// named is false if it names none, which is exact.
func (s Settings) Arithmetic() (class string, named bool) {
	given, _ := lookup(s.Job, arithmetic)
	class, _ = given.(string)
	return class, class != ""
}

// WithArithmetic is the settings with that class, where the job names none.
func (s Settings) WithArithmetic(class string) Settings {
	if _, named := s.Arithmetic(); named {
		return s
	}
	s.Job = clone(s.Job)
	set(s.Job, arithmetic, class)
	return s
}

// arithmetic is the job's key for it.
const arithmetic = "training.arithmetic"

// named spells settings for names. Exact arithmetic goes unsaid, as it did when nothing
// else was there. What the server's optimizer brings with it is said: a run made when it
// brought something else is another.
func (s Settings) named() Settings {
	s = s.WithTrueCohort()
	if class, ok := lookup(s.Job, arithmetic); ok && (class == "" || class == job.Exact) {
		s.Job = clone(s.Job)
		drop(s.Job, arithmetic)
	}
	name, ok := lookup(s.Job, "server.optimizer")
	if !ok || name == job.FedAvg || name == job.FedAvgM {
		return s
	}
	s.Job = clone(s.Job)
	d := job.Server{Optimizer: fmt.Sprint(name)}.Derived()
	for key, value := range map[string]any{"server.learning_rate": d.LearningRate, "server.epsilon": d.Epsilon} {
		if _, given := lookup(s.Job, key); !given {
			set(s.Job, key, value)
		}
	}
	return s
}

// NamesTask reports whether the settings say what is learnt; the base decides it else.
func (s Settings) NamesTask() bool {
	at, ok := s.Job["task"]
	return ok && at != nil && at != ""
}

// JobOf returns the job over the data's labels, by the settings' keys and the population.
func (s Settings) JobOf(name string, labels []string) (job.Job, error) {
	if err := s.Check(); err != nil {
		return job.Job{}, err
	}
	s = s.WithTrueCohort()
	j, err := s.jobOf(name, labels)
	if err != nil {
		err = s.advise(name, labels, err)
	}
	return j, err
}

// Deployed is the job whose fleet is simulated, with the shards and floors that a simulation does not need. Nothing
// but the keys' names and kinds is checked.
func (s Settings) Deployed() (job.Job, error) {
	keys, j := clone(s.Job), job.Default()
	set(keys, "cohort.population", s.Population)
	if s.Fixed() {
		set(keys, "cohort.size", s.Cohort)
	} else {
		set(keys, "cohort.sampling_rate", s.SamplingRate)
	}
	b, err := strict.Encode(keys)
	if err == nil {
		err = strict.Read(bytes.NewReader(b), &j)
	}
	if err != nil {
		return j, badSetting("%w", strict.Unplaced(err))
	}
	return j.Derived(), nil
}

// enough is a cohort that is not refused for its size.
const enough = 64

func (s Settings) jobOf(name string, labels []string) (job.Job, error) {
	keys := clone(s.Job)
	for _, own := range []string{"cohort.population", "cohort.sampling_rate", "cohort.size", "privacy.simulated_population", "privacy.simulated_cohort", "base"} {
		if _, ok := lookup(keys, own); ok {
			if err := possible(keys); err != nil {
				return job.Job{}, err
			}
			return job.Job{}, badSetting("%s follows from population, sampling_rate and cohort, or from --base: it cannot be set in the job", own)
		}
	}
	if kind, _ := keys["task"].(string); kind == model.TaskPretrain.String() {
		labels = nil // which the file may have
	}
	for key, value := range map[string]any{"name": name, "labels": labels} {
		if _, ok := keys[key]; !ok {
			keys[key] = value
		}
	}
	if keys["privacy"] == "none" { // as a job file may say it
		keys["privacy"] = map[string]any{"none": true}
	}
	none := s.Unprotected()
	if s.Unclipped && !none {
		return job.Job{}, badSetting("unclipped is set and privacy.none is not: noise is measured by the clip norm; set both, or neither")
	}
	rate := s.SamplingRate
	switch {
	case s.Fixed():
		set(keys, "cohort.size", s.Cohort)
		if none {
			unfloored(keys, min(2, s.Cohort))
		}
	case s.Cohort == 0 && none:
		unfloored(keys, 2)
	case s.Cohort > 0:
		rate = float64(s.Cohort) / float64(s.Population)
		if !none { // whose noise is scaled
			set(keys, "privacy.simulated_population", s.Population)
			set(keys, "privacy.simulated_cohort", int(math.Round(s.SamplingRate*float64(s.Population))))
		}
		// Floors and thresholds are about the deployment's cohort, which these few
		// clients stand for; their masks cancel anyway.
		set(keys, "cohort.floor", 2)
		set(keys, "shard.floor", 2)
		set(keys, "shard.breach_bits", 0)
		drop(keys, "cohort.quorum")
	}
	if s.start != "" {
		set(keys, "adapter.start", s.start)
	}
	set(keys, "cohort.population", s.Population)
	set(keys, "cohort.sampling_rate", rate)
	if _, ok := lookup(keys, "cohort.max_enrolled"); !ok {
		set(keys, "cohort.max_enrolled", max(s.Population, 100_000))
	}
	b, err := strict.Encode(keys)
	if err != nil {
		return job.Job{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	j, err := job.Parse(strings.NewReader(string(b)))
	if err != nil {
		return j, badSetting("%w", strict.Unplaced(err))
	}
	return j, s.fits(j)
}

// unfloored asks for no shards of a job that promises no privacy: nothing is masked in a simulation.
func unfloored(keys map[string]any, floor int) {
	if _, given := lookup(keys, "cohort.floor"); !given {
		set(keys, "cohort.floor", floor)
	}
	set(keys, "shard.floor", 2)
	set(keys, "shard.corrupt", 0)
	set(keys, "shard.breach_bits", 0)
}

// possible refuses keys that no job file has, and values of other kinds than theirs.
func possible(keys map[string]any) error {
	b, err := strict.Encode(keys)
	if err == nil {
		err = strict.Read(bytes.NewReader(b), new(job.Job))
	}
	if err != nil {
		return badSetting("%w", strict.Unplaced(err))
	}
	return nil
}

// fits refuses passes that the steps of a client of the mean size end before their time.
func (s Settings) fits(j job.Job) error {
	tr := j.Training
	if need := tr.Epochs * ((s.Examples + tr.Batch - 1) / tr.Batch); need > tr.Steps {
		return badSetting("training.epochs is %d: over %d examples (examples, the mean of a client) in batches of %d they take %d steps, and training.steps is %d; training.steps of %d would do",
			tr.Epochs, s.Examples, tr.Batch, need, tr.Steps, need)
	}
	return nil
}

// With returns the settings with one key changed: one of their own, or a dotted
// one of the job file.
func (s Settings) With(key string, value any) (Settings, error) {
	c, err := newChange(key, value)
	if err != nil {
		return s, err
	}
	return c(s), nil
}

// A change is one key's value, read once however many points of a grid it is in.
type change func(Settings) Settings

func newChange(key string, value any) (change, error) {
	if key == "privacy" && value == "none" { // as a job file may say it
		key, value = "privacy.none", true
	}
	if strings.Contains(key, ".") || key == "rounds" || key == "task" || key == "base_format" {
		return func(s Settings) Settings {
			s.Job = clone(s.Job)
			set(s.Job, key, value)
			return s
		}, nil
	}
	at := slices.Index(settingNames(), key)
	if at < 0 {
		return nil, badSetting("%s is not a setting%s", key, nearest.Question(key, "", append(settingNames(), "rounds", "task", "base_format")))
	}
	b, err := strict.Encode(map[string]any{key: value})
	if err != nil {
		return nil, badSetting("%s: %w", key, err)
	}
	var read Settings
	if err := strict.Decode(b, &read); err != nil {
		return nil, badSetting("%w", strict.Unplaced(err))
	}
	if value == nil { // a key without a value leaves what is there
		return func(s Settings) Settings { return s }, nil
	}
	return func(s Settings) Settings {
		reflect.ValueOf(&s).Elem().Field(at).Set(reflect.ValueOf(&read).Elem().Field(at))
		return s
	}, nil
}

// settingNames are the keys of the fields of Settings, "-" of those that have none.
func settingNames() []string {
	var names []string
	for f := range reflect.TypeFor[Settings]().Fields() {
		names = append(names, cmp.Or(f.Tag.Get("yaml"), "-"))
	}
	return names
}

// Flat lists every setting under its dotted name, for a table.
func (s Settings) Flat() (map[string]string, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	out := map[string]string{}
	if job, ok := tree["job"].(map[string]any); ok {
		delete(tree, "job")
		flatten("", job, out) // apart: both have a key cohort, a number here and a section there
	}
	flatten("", tree, out)
	return out, nil
}

func flatten(prefix string, tree map[string]any, out map[string]string) {
	for k, v := range tree {
		if sub, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", sub, out)
			continue
		}
		out[prefix+k] = text(v)
	}
}

// text writes a value as a table shows it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64) // a million clients, not 1e+06
		}
		return fmt.Sprint(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// set puts a value under a dotted key.
func set(tree map[string]any, key string, value any) {
	for {
		head, rest, more := strings.Cut(key, ".")
		if !more {
			tree[head] = value
			return
		}
		sub, ok := tree[head].(map[string]any)
		if !ok {
			sub = map[string]any{}
			tree[head] = sub
		}
		tree, key = sub, rest
	}
}

// drop removes what is under a dotted key, and the maps that it leaves empty.
func drop(tree map[string]any, key string) {
	head, rest, more := strings.Cut(key, ".")
	if sub, ok := tree[head].(map[string]any); ok && more {
		if drop(sub, rest); len(sub) > 0 {
			return
		}
	}
	delete(tree, head)
}

func lookup(tree map[string]any, key string) (any, bool) {
	for {
		head, rest, more := strings.Cut(key, ".")
		v, ok := tree[head]
		if !more || !ok {
			return v, ok
		}
		if tree, ok = v.(map[string]any); !ok {
			return nil, false
		}
		key = rest
	}
}

// clone copies a tree's maps; values are never changed in place.
func clone(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		v := tree[k]
		if sub, ok := v.(map[string]any); ok {
			v = clone(sub)
		}
		out[k] = v
	}
	return out
}
