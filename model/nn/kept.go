package nn

import (
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/model"
)

// Names of what a step has whose host keeps what the convolutions make of recordings: for each
// recording it is the same in every step, and most of a step's work.
const (
	KeptName     = "kept"     // float32 []; 1: FeaturesName has those of the batch, and the convolutions are passed over
	FeaturesName = "features" // float32 [B, frames, width], a state: what they have made
)

// Keepable tells whether a step over a layout may be one with Keep: recordings are heard and no
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
	given *graph.Node // KeptName
	anew  *graph.Node // it is 0
	were  *graph.Node // FeaturesName before the step
	now   *graph.Node // and after it
}

func (k *kept) addState(p *params, s StepSpec) {
	if k != nil {
		c := s.Config.Speech
		k.anew = graph.Equal(k.given, graph.ScalarZero(p.g, dtypes.Float32)) // before what depends on it
		k.were = p.add(FeaturesName, State, dtypes.Float32, s.rows(), s.Sequence, c.Width[c.Width.Len()-1])
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
	return []Output{{Name: FeaturesName + ".new", State: FeaturesName, Node: k.now}}
}
