package model

import (
	"fmt"
	"slices"
)

// TaskKind names a task, which decides the model's head. Package task encodes examples and scores predictions.
type TaskKind string

// Reading says what of a model a task's head reads.
type Reading uint8

const (
	ReadsExample Reading = iota // one state of the whole text or image: see Pooling
	ReadsTokens                 // each token's state
	ReadsMasked                 // the states of the tokens that were masked
	ReadsDecoder                // the decoder's, which writes a text token by token
	ReadsNext                   // the states of tokens whose next one is to be told, of a model that sees nothing later
	ReadsFrames                 // each frame's state of a recording
)

// Loss names the loss that a step minimizes.
type Loss uint8

const (
	LossLabel    Loss = iota // cross-entropy of the one right label
	LossLabels               // binary cross-entropy of each label, which is right or not
	LossSpan                 // of the places where an answer begins and ends
	LossMasked               // of masked tokens, or of those that come next, over the whole vocabulary
	LossText                 // of a text's tokens, over the whole vocabulary
	LossSpelling             // of a text's characters, over all ways in which frames spell them: CTC
)

// taskSpec states what concerns one task, each of which has a file of its own. What another
// package asks of a task, it asks by TaskKind's methods.
type taskSpec struct {
	kind TaskKind
	name string // in a job file

	reads    Reading
	loss     Loss
	labelled bool // examples, or what they are made of, have labels, of a few that the job names
	asks     bool // an example is a question, which has answers and no label
	images   bool // it is an image's; only these are over a base that reads images
	sounds   bool // it is a recording's; only these are over a base that reads recordings
	boxes    bool // it can read where words stand: see BoxEmbeddings
	answer   int  // the most tokens of an answer where a method does not say

	head    func(c Config) []Dense // from what is read to the outputs; nil: the architecture's, as Config.Head has it
	outputs func(c Config) int     // scores of each state that is read; nil: one of each label
	entries func(c Config) []Entry // trained tensors that are no affine map; may be nil
	fits    func(c Config) error   // refuses a base that it is not for; may be nil

	problem  string         // problem_type of a head that computes it; "": config.json says none
	config   map[string]any // keys of config.json that are the task's own
	class    string         // of transformers, behind an architecture's name
	auto     string         // the class that finds it; "": AutoModel and class
	peftType any            // PEFT's task_type; nil where it has no class that will do
	tied     bool           // a module of the head is tied to the word embeddings, and PEFT cannot load it: it goes with the base

	pipeline, title string                         // on a model card
	made            func(l *Layout) string         // what is on the encoder, on a model card; nil: nothing
	usage           func(c *Checkpoint) (s string) // lines of Python that ask a loaded model
}

// tasks are the known ones, that of an empty name first.
var tasks []*taskSpec

func init() { // the values' functions ask for tasks themselves
	tasks = []*taskSpec{&classifyTask, &multiLabelTask, &tagTask, &spanTask, &imageTask, &listenTask, &transcribeTask, &answerTask, &pretrainTask, &denoiseTask, &causalTask}
}

func (t TaskKind) find() (*taskSpec, bool) {
	for _, k := range tasks {
		if k.kind == t {
			return k, true
		}
	}
	return &classifyTask, false // which nothing takes
}

func (t TaskKind) of() *taskSpec { k, _ := t.find(); return k }

// String is the task's name in a job file.
func (t TaskKind) String() string {
	if k, known := t.find(); known {
		return k.name
	}
	return string(t)
}

// ParseTask reads a task's name; "" is classify.
func ParseTask(name string) (TaskKind, error) {
	for _, t := range tasks {
		if name == "" || name == t.name {
			return t.kind, nil
		}
	}
	return "", fmt.Errorf("%w: task is %.40q, want one of %q", ErrConfig, name, TaskNames())
}

// TaskNames lists the names of the known tasks.
func TaskNames() []string {
	var names []string
	for _, t := range tasks {
		if !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// DefaultTask is the task of a base whose kind has only one, else classify.
func (c Config) DefaultTask() TaskKind {
	for _, t := range tasks {
		if t.images && c.Sees() || t.sounds && c.Hears() || t.reads == ReadsDecoder && c.Generates() || t.reads == ReadsNext && c.Causal() {
			return t.kind
		}
	}
	return TaskClassify
}

// CheckTask refuses a task that the base has no inputs or no states for.
func (c Config) CheckTask(kind TaskKind) error {
	t, known := kind.find()
	switch {
	case !known:
		return fmt.Errorf("%w: task is %.40q, want one of %q", ErrConfig, string(kind), TaskNames())
	case c.Sees() && !t.images:
		return fmt.Errorf("%w: task is %s, but a %s reads images", ErrConfig, t.name, c.ModelType)
	case c.Hears() && !t.sounds:
		return fmt.Errorf("%w: task is %s, but a %s reads recordings", ErrConfig, t.name, c.ModelType)
	case !c.Hears() && t.sounds:
		return fmt.Errorf("%w: task is %s, but a %s reads none: give a base that reads recordings, the folder of a hubert or a wav2vec2",
			ErrConfig, t.name, c.ModelType)
	case !c.Sees() && t.images:
		return fmt.Errorf("%w: task is %s, but a %s reads texts: give a base that reads images, the folder of a vit", ErrConfig, t.name, c.ModelType)
	case c.Causal() && t.reads != ReadsNext:
		return fmt.Errorf("%w: task is %s, but a %s writes on what it reads: its task is %s", ErrConfig, t.name, c.ModelType, TaskCausal)
	case !c.Causal() && t.reads == ReadsNext:
		return fmt.Errorf("%w: task is %s, but a %s does not write on what it reads: give a base that does, as a llama", ErrConfig, t.name, c.ModelType)
	case c.Pooling == PoolNone && t.reads == ReadsExample:
		return fmt.Errorf("%w: task is %s, but the base has no pooler (pooler.dense): "+
			"it is for tasks of words, %s and %s, unless its config.json says \"pooling\": \"mean\", or \"first\"", ErrConfig, t.name, TaskTag, TaskSpan)
	}
	return nil
}

// suits refuses a base that the task is not for in another way; Method.Validate asks once
// the method itself is looked at.
func (t *taskSpec) suits(c Config) error {
	if t.fits != nil {
		if err := t.fits(c); err != nil {
			return err
		}
	}
	if c.Generates() != (t.reads == ReadsDecoder) {
		return fmt.Errorf("task is %q over a %s: answer is for a base with a decoder, whose other task is %s", t.name, c.ModelType, TaskPretrain)
	}
	return nil
}

// Reads says which states of the model the task's head reads.
func (t TaskKind) Reads() Reading { return t.of().reads }

// Loss is the loss that a step minimizes.
func (t TaskKind) Loss() Loss { return t.of().loss }

// Judged reports whether a step can tell how many labels it has right.
func (t TaskKind) Judged() bool { return t.Loss() == LossLabel || t.Loss() == LossLabels }

// OfTokens reports whether the task reads tokens' states, where others read one of the whole
// example.
func (t TaskKind) OfTokens() bool { r := t.Reads(); return r == ReadsTokens || r == ReadsMasked }

// Labelled reports whether examples, or their words, have labels from the job's list.
func (t TaskKind) Labelled() bool { return t.of().labelled }

// PredictsTokens reports whether the model predicts a text's own tokens.
func (t TaskKind) PredictsTokens() bool {
	r := t.Reads()
	return r == ReadsMasked || r == ReadsNext || t == TaskDenoise
}

// Writes reports whether a model of the task writes, or finds, answers of so many tokens.
func (t TaskKind) Writes() bool { return t.of().answer > 0 || t.Asks() }

// Tried reports whether what a model has learnt can be tried on an example by itself: a
// pretrained one answers nothing yet.
func (t TaskKind) Tried() bool { return t.Reads() != ReadsMasked && t != TaskDenoise }

// Generative reports whether a model that is tried writes a text, token by token.
func (t TaskKind) Generative() bool {
	r := t.Reads()
	return t.Tried() && (r == ReadsDecoder || r == ReadsNext)
}

// Asks reports whether an example of the task is a question, which has answers and no label.
func (t TaskKind) Asks() bool { return t.of().asks }

// HeadFor lists the maps from what the task reads of the last layer to its outputs.
func (c Config) HeadFor(t TaskKind) []Dense {
	if head := t.of().head; head != nil {
		return head(c)
	}
	return c.Head()
}

// For is the configuration as a task uses it: one of tokens has no use for a pooler.
func (c Config) For(t TaskKind) Config {
	if t.OfTokens() {
		c.Pooling = PoolNone
	}
	return c
}

// autoClass is the class of transformers that finds the task's own for a base.
func (t *taskSpec) autoClass() string {
	if t.auto != "" {
		return t.auto
	}
	return "AutoModel" + t.class
}

// oneMap is a head of one affine map that the job trains.
func oneMap(name string) func(Config) []Dense {
	return func(Config) []Dense { return []Dense{{Name: name, Trained: true}} }
}

// ofLabels says on a model card what is on the encoder.
func ofLabels(l *Layout) string { return fmt.Sprintf("a head of %d classes", l.Classes) }

// tokenized are the lines of Python that make inputs of a text and logits of them.
func (c *Checkpoint) tokenized() string {
	return fmt.Sprintf("inputs = tokenizer([\"a text\"], truncation=True, max_length=%d, padding=True, return_tensors=\"pt\")\n", c.Seq) + logitsOf
}

const logitsOf = "with torch.no_grad():\n    logits = model.eval()(**inputs).logits\n"
