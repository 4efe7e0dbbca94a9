package nn

import (
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/trainer"
)

// Keepable reports whether a step over a layout may be one with Keep: recordings are heard and no
// convolution is trained.
func Keepable(lay *model.Layout) bool {
	if !lay.Config.Hears() {
		return false
	}
	for _, e := range lay.Entries() {
		if strings.HasPrefix(e.Name, model.SpeechExtractor) {
			return false
		}
	}
	return true
}

// kept is what a step with Keep has beside others. A nil one is of a step without.
type kept struct {
	given *graph.Node // trainer.InputKept
	anew  *graph.Node // it is 0
	were  *graph.Node // trainer.StateFeatures before the step
	now   *graph.Node // and after it
}

func (k *kept) addState(p *params, s StepSpec) {
	if k != nil {
		c := s.Config.Speech
		k.anew = graph.Equal(k.given, graph.ScalarZero(p.g, dtypes.Float32)) // before what depends on it
		k.were = p.add(trainer.StateFeatures, State, dtypes.Float32, s.rows(), s.Sequence, c.Width[c.Width.Len()-1])
	}
}

// choose is what the convolutions make, or made: a program passes over what it does not choose.
func (k *kept) choose(made *graph.Node) *graph.Node {
	if k == nil {
		return made
	}
	k.now = pick(k.anew, made, k.were)
	return k.now
}

func (k *kept) outputs() []Output {
	if k == nil {
		return nil
	}
	return []Output{{Name: trainer.StateFeatures + ".new", State: trainer.StateFeatures, Node: k.now}}
}
