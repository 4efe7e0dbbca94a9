package model

import (
	"slices"
	"strings"
)

// methodSpec is all that one method differs in: what it trains beside the head, what a job may say
// of it, and how people name it. Whatever this package asks of a method, it asks here.
type methodSpec struct {
	kind    MethodKind
	ranked  bool                         // low-rank matrices: ranks, a scale and targets
	whole   func(tensor string) bool     // tensors of the base that are trained as differences; nil: none but Also's
	all     bool                         // these are all
	width   func(m Method, c Config) int // columns of its bottlenecks; nil: it has none
	blocks  bool                         // whose maps are sums of products
	within  string                       // what a base needs for it: "layers" of an encoder, a "head", "biases"; "": nothing
	slower  float64                      // by how much its default learning rate is lower; 0: it is not
	written string                       // in a model's card; a ranked one's says its rank
}

// methods are all, in the order in which they are named.
var methods = []*methodSpec{
	{kind: MethodLoRA, ranked: true},
	{kind: MethodHead, within: "head", written: "untouched but for its head"},
	{kind: MethodBitFit, within: "biases", written: "with its biases trained (BitFit)",
		whole: func(tensor string) bool { return strings.HasSuffix(tensor, ".bias") }},
	// Every map moves at full rank, and the embeddings with them: slower.
	{kind: MethodFull, all: true, slower: 10, written: "fine-tuned whole", whole: func(string) bool { return true }},
	{kind: MethodAdapter, within: "layers", width: adapterWidth, written: "with bottlenecks in its layers (Adapter)"},
	{kind: MethodCompacter, within: "layers", width: compacterWidth, blocks: true, written: "with bottlenecks in its layers (Compacter)"},
}

// MethodNames lists the names of the known methods.
func MethodNames() []string {
	var names []string
	for _, m := range methods {
		names = append(names, string(m.kind))
	}
	return names
}

// find is the method of a name; the empty one is LoRA.
func (k MethodKind) find() (*methodSpec, bool) {
	i := slices.IndexFunc(methods, func(m *methodSpec) bool { return m.kind == k || k == "" && m.kind == MethodLoRA })
	if i < 0 {
		return &methodSpec{kind: k}, false
	}
	return methods[i], true
}

func (m Method) of() *methodSpec { a, _ := m.Kind.find(); return a }

// Known reports whether there is a method of the name; the empty one is LoRA.
func (k MethodKind) Known() bool { _, ok := k.find(); return ok }

// Ranked reports whether the method has ranks; without them there is only rank 0.
func (m Method) Ranked() bool { return m.of().ranked }

// RateDivisor is by how much the default learning rate of the method is below LoRA's.
func (m Method) RateDivisor() float64 { return max(1, m.of().slower) }

// Bottlenecks reports whether the method adds modules to the base.
func (m Method) Bottlenecks() bool { return m.of().width != nil }
