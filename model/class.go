package model

import "strings"

// A Class says what training a tensor can tell of the examples that it is trained on,
// from what the tensor is and not from what it is called by anyone who announces it.
type Class string

const (
	ClassLoRA       Class = "lora"       // factors of a low rank
	ClassHead       Class = "head"       // of the answers: what it tells of is labels
	ClassBiases     Class = "biases"     // one value a feature
	ClassAdapters   Class = "adapters"   // bottlenecks, of a low rank too
	ClassNorms      Class = "norms"      // one scale a feature
	ClassMatrices   Class = "matrices"   // a linear map whole, or a table of positions between tokens
	ClassEmbeddings Class = "embeddings" // what is read first: a row moves where its token, place or pixel stands in an example
)

// Classes lists them, those first that tell least.
func Classes() []Class {
	return []Class{ClassLoRA, ClassHead, ClassBiases, ClassAdapters, ClassNorms, ClassMatrices, ClassEmbeddings}
}

// Class returns the class of one of the layout's tensors: a whole matrix, unless known to be less.
func (l *Layout) Class(e Entry) Class {
	switch e.Kind {
	case KindA, KindB:
		return ClassLoRA
	case KindHead:
		if l.Method.Task.Reads() == ReadsMasked && e.Shape[0] == l.Config.VocabSize {
			return ClassEmbeddings // one value for each token that a masked one may have been
		}
		return ClassHead
	case KindAdapter:
		if e.Name == boxWeight {
			return ClassEmbeddings
		}
		return ClassAdapters
	}
	name := e.Changes()
	switch {
	case e.Shape[0] == l.Config.VocabSize && !l.Config.Textless():
		return ClassEmbeddings
	case len(e.Shape) == 1 && strings.HasSuffix(name, ".bias"):
		return ClassBiases
	case len(e.Shape) == 1:
		return ClassNorms
	case strings.Contains(name, "emb"): // word, position and type tables, patches and their matchers
		return ClassEmbeddings
	}
	return ClassMatrices
}

// Named reports whether a name stands for one of the layout's tensors, as in Method.Also:
// by its own name's end or its module's.
func (e Entry) Named(name string) bool { return covers(name, e.Changes()) }
