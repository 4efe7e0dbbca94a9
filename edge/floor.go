package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// The owner's floor: what a policy holds a job to although everybody but this device lies,
// the coordinator and all other devices of every sum. See Policy's first fields.

// The reasons, as an owner reads them.
const (
	whyHonest = "Nothing but this coordinator's honesty protects your data: if it invents the other devices and adds no noise, what this device sends is all it sees"
	whyFew    = "The fewer examples an update averages, the closer it is to one of them, which can then be read from it"
	whyBase   = "A base can be made so that training over it writes your data into the update; one that is published was made for everybody"
	whyTensor = "A row of an embedding table is a word: which rows an update moves says which words your data has; a whole matrix or norm holds more of it than an adapter does"
)

// roundBits bounds, in bits, what a round can tell about the data of a device whose update is alone
// in its sum, at own noise v over one unit's norm bound: the capacity of a Gaussian channel of any
// dimension whose signal is within units clip norms. It is infinite without noise.
func roundBits(v float64, units int) float64 {
	of := float64(max(1, units)) / v
	return of * of / (2 * math.Ln2)
}

// callable is how many of the rounds that a job announces a device may be asked to answer: a
// coordinator can call rounds lost, and Account.begin answers so many more.
func callable(rounds uint64) float64 { return float64(rounds) + float64(spare(rounds)) }

// knownBases stands for those of every list that the device has.
const knownBases = "known"

// checkBase checks a job's base against the policy: which one it is says its hash, and the
// lists that the device has, not the coordinator. What the owner has given is known.
func (c *client) checkBase(j *job) error {
	sum := j.Base.SHA256
	name := hex.EncodeToString(sum[:])
	for _, allowed := range c.cfg.Policy.Bases {
		switch allowed {
		case anything, name:
			return nil
		case knownBases:
			if _, listed := c.listed(sum); listed || c.own[sum] != nil {
				return nil
			}
		}
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{Key: "bases", What: c.unlisted(j),
		Why: whyBase, Have: name, Want: strings.Join(c.cfg.Policy.Bases, ", ")})
}

// unlisted tells of a base that no list has, and of its tokenizer, which is chosen with it.
func (c *client) unlisted(j *job) string {
	what := fmt.Sprintf("the base model, %x, is in no list", j.Base.SHA256)
	if from, ok := c.published(j); ok {
		what += fmt.Sprintf("; the coordinator says that it is %s of a hub, where anybody can put one", from)
	} else {
		what += ": only this coordinator has it, as far as this device can tell"
	}
	if c.knowsTokenizer(j.Published.Tokenizer) {
		return what + "; its tokenizer is a published one"
	}
	return what + fmt.Sprintf("; nor is its tokenizer, %x, which says what becomes of each word", j.Published.Tokenizer)
}

// checkTensors checks what a layout trains at a rank against the policy: what is trained is
// read from the tensors, not from what the coordinator calls its method.
func (p *Policy) checkTensors(l *model.Layout, rank int) error {
	if slices.Contains(p.Tensors, anything) {
		return nil
	}
	values, names := map[model.Class]int{}, map[model.Class][]string{}
	for _, s := range l.Spans(rank) {
		class := l.Class(s.Entry)
		if s.Len == 0 || slices.ContainsFunc(p.Tensors, func(name string) bool { return name == string(class) || s.Named(name) }) {
			continue
		}
		values[class] += s.Len
		names[class] = append(names[class], s.Name)
	}
	var what, have []string
	for _, class := range model.Classes() {
		if n := len(names[class]); n > 0 {
			have = append(have, string(class))
			what = append(what, fmt.Sprintf("%d values of %d %s, %s first", values[class], n, class, names[class][0]))
		}
	}
	if len(have) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{Key: "tensors", What: "the job trains " + strings.Join(what, "; "), Why: whyTensor,
		Have: strings.Join(append(slices.Clone(p.Tensors), have...), ","), Want: strings.Join(p.Tensors, ", ")})
}

// checkAverage refuses a round whose steps cannot come upon as many examples as the owner
// wants: by what it plans, not by what this device holds, so that a refusal says nothing
// of that.
func (p *Policy) checkAverage(j *wire.Job, pl *wire.Plan) error {
	groups := uint64(max(1, j.Groups))
	most := groups * uint64(pl.Steps) * uint64(j.Batch)
	if most >= uint64(p.Examples) {
		return nil
	}
	return &PolicyError{"examples", fmt.Sprintf("the round's %d steps of %d examples average %d at most", groups*uint64(pl.Steps), j.Batch, most), whyFew,
		strconv.FormatUint(max(1, most), 10), "at least " + strconv.Itoa(p.Examples)}
}

// checkEnough refuses data that has fewer examples than an update is to average, before
// anything is sent. Of several providers one that has enough will do: the others
// contribute nothing.
func (p *Policy) checkEnough(parts []*dataset.Set) error {
	most := 0
	for _, part := range parts {
		most = max(most, len(part.Examples))
	}
	return p.enough(most)
}

func (p *Policy) enough(most int) error {
	if most >= p.Examples {
		return nil
	}
	return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{"examples", fmt.Sprintf("your data has %d examples", most), whyFew,
		strconv.Itoa(most), "at least " + strconv.Itoa(p.Examples)})
}

// validateFloor refuses limits that mean nothing, with the key that does.
func (p *Policy) validateFloor() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: policy: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	var err error
	if !(p.OwnNoise >= 0) || math.IsInf(p.OwnNoise, 1) {
		err = errors.Join(err, bad("own_noise is %v, must be positive, or 0 for none", p.OwnNoise))
	}
	if !(p.Leak >= 0 && p.Leak <= 1) {
		err = errors.Join(err, bad("leak is %v, must lie in 0..1", p.Leak))
	}
	if !(p.Bits >= 0) {
		err = errors.Join(err, bad("bits is %v, must be positive, or 0 for no limit", p.Bits))
	}
	if !(p.ExampleBits >= 0) {
		err = errors.Join(err, bad("example_bits is %v, must be positive, or 0 for no limit", p.ExampleBits))
	}
	if !(p.ExampleNoise >= 0) || math.IsInf(p.ExampleNoise, 1) {
		err = errors.Join(err, bad("example_noise is %v, must be positive, or 0 for none", p.ExampleNoise))
	}
	if len(p.Tensors) == 0 {
		err = errors.Join(err, bad("tensors is empty: nothing could be trained"))
	}
	for _, name := range p.Tensors {
		if name != anything && !slices.Contains(model.Classes(), model.Class(name)) && !strings.Contains(name, ".") {
			err = errors.Join(err, bad("tensors: %.80q is neither one of %v nor a tensor's name, which has a dot, nor any", name, model.Classes()))
		}
	}
	if len(p.Bases) == 0 {
		err = errors.Join(err, bad("bases is empty: no job has none"))
	}
	for _, name := range p.Bases {
		if b, e := hex.DecodeString(name); name != anything && name != knownBases && (e != nil || len(b) != 32 || name != strings.ToLower(name)) {
			err = errors.Join(err, bad("bases: %.80q is neither %s nor %s nor 64 hexadecimal digits in lower case", name, knownBases, anything))
		}
	}
	return err
}
