package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MethodKind says what of a model is trained beside the head.
type MethodKind string

const (
	MethodLoRA   MethodKind = "lora"   // low-rank updates of linear maps (Hu et al. 2022), cut to a rank as in DyLoRA
	MethodHead   MethodKind = "head"   // nothing
	MethodBitFit MethodKind = "bitfit" // every bias (Ben Zaken et al. 2022)
	MethodFull   MethodKind = "full"   // every tensor

	// Bottlenecks behind attention and feed-forward of every layer, in front of the
	// residual: x + U gelu(D x + b) + c.
	MethodAdapter   MethodKind = "adapter"   // Houlsby et al. 2019
	MethodCompacter MethodKind = "compacter" // D and U sums of Kronecker products (Mahabadi et al. 2021)
)

// Method says what is trained: for LoRA low-rank updates of linear maps in every
// layer, h += s_b * x A[:b,:]^T B[:,:b]^T at rank b (see Scale); for all kinds the head,
// and tensors of the base that are trained whole, as differences from it.
//
// Targets and Also are lists with commas between names, so that methods can be
// compared. A name stands for what it is the end of, at a dot: "query",
// "attention.output.dense". They may come from a stranger: they only ever choose
// among the base's own names.
type Method struct {
	RMax    int        `json:"r_max"`             // LoRA: rank of the stored matrices, 1..hidden
	Alpha   float64    `json:"alpha"`             // LoRA: numerator of the scale, > 0
	Scaling Scaling    `json:"scale,omitempty"`   // LoRA: what divides it
	Kind    MethodKind `json:"kind,omitempty"`    // "" is LoRA
	Targets string     `json:"targets,omitempty"` // LoRA: linear maps, or AllLinear; "" is query and value
	Also    string     `json:"also,omitempty"`    // tensors, or modules with all their tensors, trained whole
	Task    TaskKind   `json:"task,omitempty"`    // what the head answers

	Bottleneck int `json:"bottleneck,omitempty"` // adapter, compacter: columns between D and U; 0: hidden/16, hidden/32
	Blocks     int `json:"blocks,omitempty"`     // compacter: n, the products of each sum and the side of their shared factor; 0: 8
	Answer     int `json:"answer,omitempty"`     // of tasks that ask: most tokens of an answer, a written one's end included; 0: 32, of a span 64

	// Objectives of pretraining on documents, each drawn as often as it is named; "" is all of them once.
	Objectives string `json:"objectives,omitempty"`
}

// Objectives of federated self-pretraining, which hide texts, places, and both.
var Objectives = []string{"TM", "LM", "TLM"}

// ObjectiveNames are the method's, with those that are named more than once.
func (m Method) ObjectiveNames() []string {
	if m.Objectives == "" {
		return Objectives
	}
	return strings.Split(m.Objectives, ",")
}

// Limits of a method's lists.
const (
	maxMethodList = 4096 // bytes
	maxMethodName = 64   // names

	maxAnswer = 1024
)

// AnswerTokens is the most tokens of an answer, a written one's end included.
func (m Method) AnswerTokens() int {
	return cmp.Or(m.Answer, m.Task.of().answer)
}

// BoxEmbeddings, among the tensors trained whole (Also), lets a model of spans read the places of
// words: a linear map [hidden, 4] of each word's box in parts of the page, added to its tokens'
// embeddings, which is zero at the start. LayoutLM's tables (Xu et al. 2020) can hold it.
const (
	BoxEmbeddings = "box_embeddings"
	boxWeight     = BoxEmbeddings + ".weight"
)

// Boxes reports whether the model reads the places of words in addition to BERT's inputs.
func (m Method) Boxes() bool {
	return m.Task.of().boxes && slices.Contains(strings.Split(m.Also, ","), BoxEmbeddings)
}

// Scaling says what divides alpha in the scale s_b of the low-rank product at rank b.
// At r_max the two are the same.
type Scaling string

const (
	// ScaleByRank is s_b = alpha/b, DyLoRA's rule (Valipour et al. 2023): a step at rank
	// 1 reaches r_max times as far as one at r_max with the same matrices.
	ScaleByRank Scaling = ""
	// ScaleConstant is s_b = alpha/r_max: a rank is nothing but a cut of the sum over
	// ranks, as in DP-DyLoRA's equation 5 (Xu et al. 2024), which has no other scale.
	ScaleConstant Scaling = "constant"
)

// ParseScaling reads what job files and command lines call a scaling: rank, which empty
// stands for, or constant.
func ParseScaling(s string) (Scaling, error) {
	switch s {
	case "", "rank":
		return ScaleByRank, nil
	case string(ScaleConstant):
		return ScaleConstant, nil
	}
	return "", fmt.Errorf("%w: scale is %.40q, want rank (alpha/b) or constant (alpha/r_max)", ErrConfig, s)
}

// Scale is the factor s_b of the low-rank product at rank b.
func (m Method) Scale(b int) float64 {
	if m.Scaling == ScaleConstant {
		b = m.RMax
	}
	return m.Alpha / float64(b)
}

// AlphaAt is b times the scale at rank b: what PEFT, which knows no ranks but the file's
// own, calls lora_alpha of a cut to rank b.
func (m Method) AlphaAt(b int) float64 {
	if m.Scaling == ScaleConstant {
		return m.Alpha * float64(b) / float64(m.RMax)
	}
	return m.Alpha
}

// Spelled formats the method, by %v or %+v, for hashes that name what a job starts from: as
// before there were a Scaling and Objectives, with them behind where they are not alpha/b and all.
func (m Method) Spelled(format string) string {
	return fmt.Sprintf(format, struct {
		RMax                       int
		Alpha                      float64
		Kind                       MethodKind
		Targets, Also              string
		Task                       TaskKind
		Bottleneck, Blocks, Answer int
	}{m.RMax, m.Alpha, m.Kind, m.Targets, m.Also, m.Task, m.Bottleneck, m.Blocks, m.Answer}) + string(m.Scaling) + m.Objectives
}

// Validate checks the method against the encoder that it is for.
func (m Method) Validate(c Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
	}
	if err := c.CheckTask(m.Task); err != nil {
		return err
	}
	m.Task = c.Settled(m.Task)
	a := m.of()
	switch {
	case !m.Kind.Known():
		return bad("method is %.40q, want one of %q", m.Kind, MethodNames())
	case a.within == "layers" && c.arch().layer == nil:
		return bad("method is %s, which a %s has no place for", m.Kind, c.ModelType)
	case m.Bottleneck < 0 || m.Bottleneck > c.HiddenSize || m.Bottleneck > 0 && !m.Bottlenecks():
		return bad("bottleneck is %d, want 1..hidden_size %d for adapter and compacter, and 0 for others", m.Bottleneck, c.HiddenSize)
	case m.Blocks < 0 || m.Blocks > maxBlocks || m.Blocks > 0 && !a.blocks:
		return bad("blocks is %d, want 1..%d for compacter, and 0 for others", m.Blocks, maxBlocks)
	case a.blocks && (c.HiddenSize%m.BlockCount() != 0 || m.Width(c)%m.BlockCount() != 0):
		return bad("blocks is %d, which must divide hidden_size %d and the bottleneck %d", m.BlockCount(), c.HiddenSize, m.Width(c))
	case m.RMax < 1 || m.RMax > c.HiddenSize:
		return bad("r_max is %d, want 1..hidden_size %d", m.RMax, c.HiddenSize)
	case !(m.Alpha > 0 && m.Alpha <= 1e6):
		return bad("alpha is %v, want within (0, 1e6]", m.Alpha)
	case m.Scaling != ScaleByRank && m.Scaling != ScaleConstant:
		return bad("scale is %.40q, want %q, or none for alpha/b", m.Scaling, ScaleConstant)
	case m.Scaling != ScaleByRank && !m.Ranked():
		return bad("scale is %s, but only lora has one, not %s", m.Scaling, m.Kind)
	case m.Targets != "" && !m.Ranked():
		return bad("targets are given, but only lora has some, not %s", m.Kind)
	case m.Boxes() && c.ModelType != "bert":
		return bad("also has %s, but the base is a %s: LayoutLM, which computes them elsewhere, is a bert", BoxEmbeddings, c.ModelType)
	case m.Also != "" && m.Also != BoxEmbeddings && a.all:
		return bad("also is given, but full trains every tensor")
	case m.Task.of().suits(c) != nil:
		return bad("%w", m.Task.of().suits(c))
	case m.Answer < 0 || m.Answer > maxAnswer || !m.Task.Writes() && m.Answer != 0:
		return bad("answer is %d tokens, want 0..%d, and 0 for any task but answer, span and pretrain of a base with a decoder", m.Answer, maxAnswer)
	case c.Generates() && (a.within == "biases" || a.within == "head" && m.Also == ""):
		return bad("method is %s, but a %s has no head and no biases", m.Kind, c.ModelType)
	case c.Causal() && (a.within == "head" || a.within == "biases" && len(m.whole(c)) == 0):
		return bad("method is %s, but this %s has none to train", m.Kind, c.ModelType)
	}
	if m.Objectives != "" && m.Task != TaskDenoise {
		return bad("objectives are %.80q, but only task pretrain over a base that reads documents has some", m.Objectives)
	}
	for key, list := range map[string]string{"targets": m.Targets, "also": m.Also, "objectives": m.Objectives} {
		names, err := splitList(key, list)
		if err != nil {
			return err
		}
		for _, n := range names {
			if key == "objectives" && !slices.Contains(Objectives, n) {
				return bad("objectives: there is no %.80q, but %q", n, Objectives)
			}
			if key == "targets" && list != AllLinear && !slices.ContainsFunc(c.linears(), func(l linear) bool { return endsAt(l.name, n) }) {
				return bad("targets: no linear map of a layer ends in %.80q; there are %s", n, c.linearNames())
			}
			if key == "also" && !(n == BoxEmbeddings && m.Boxes()) && !slices.ContainsFunc(c.BaseTensors(), func(t TensorSpec) bool { return covers(n, t.Name) && !c.Frozen(t.Name) }) {
				return bad("also: the base has no tensor or module that ends in %.80q and may be trained", n)
			}
		}
	}
	return nil
}

func splitList(key, list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	if len(list) > maxMethodList {
		return nil, fmt.Errorf("%w: %s has %d bytes, limit %d", ErrConfig, key, len(list), maxMethodList)
	}
	names := strings.Split(list, ",")
	if len(names) > maxMethodName {
		return nil, fmt.Errorf("%w: %s has %d names, limit %d", ErrConfig, key, len(names), maxMethodName)
	}
	for _, n := range names {
		if n == "" || n != strings.TrimSpace(n) {
			return nil, fmt.Errorf("%w: %s has the name %.80q", ErrConfig, key, n)
		}
	}
	return names, nil
}

// AllLinear, in the place of targets, is every linear map of the layers, as PEFT's
// all-linear is of a model for text: the head is none of them.
const AllLinear = "all-linear"

// endsAt reports whether name is end, or ends in it at a dot.
func endsAt(name, end string) bool { return name == end || strings.HasSuffix(name, "."+end) }

// covers reports whether a name in Also stands for a tensor.
func covers(name, tensor string) bool {
	if endsAt(tensor, name) {
		return true
	}
	module := tensor[:max(0, strings.LastIndexByte(tensor, '.'))]
	return endsAt(module, name)
}

// linear is a linear map of a layer.
type linear struct {
	name    string
	in, out int
}

// linears lists those of all layers in the order of a forward pass.
func (c Config) linears() []linear {
	if f := c.arch().linears; f != nil {
		return f(c)
	}
	h, f := c.HiddenSize, c.IntermediateSize
	var all []linear
	for i := range c.NumHiddenLayers {
		n := c.Layer(i)
		all = append(all, linear{n.Query, h, h}, linear{n.Key, h, h}, linear{n.Value, h, h}, linear{n.AttentionOutput, h, h},
			linear{n.Intermediate, h, f}, linear{n.Output, f, h})
	}
	return all
}

// linearNames lists what the linear maps are called in every layer.
func (c Config) linearNames() []string {
	var names []string
	for _, l := range c.linears() {
		if short := l.inLayer(); !slices.Contains(names, short) {
			names = append(names, short)
		}
	}
	return names
}

// inLayer is what a linear map is called within its layer: what is behind the
// layer's number.
func (l linear) inLayer() string {
	parts := strings.Split(l.name, ".")
	layer := slices.IndexFunc(parts, func(p string) bool { return p[0] >= '0' && p[0] <= '9' })
	return strings.Join(parts[layer+1:], ".")
}

// LinearMaps names the linear maps of all layers in the order of a forward pass.
func (c Config) LinearMaps() []string { return namesOf(c.linears()) }

func namesOf(maps []linear) (names []string) {
	for _, m := range maps {
		names = append(names, m.name)
	}
	return names
}

// TargetsOf returns the Method.Targets that name, in all layers, the linear maps for which adapted is true in one;
// "" for the architecture's default.
func (c Config) TargetsOf(adapted func(name string) bool) string {
	var names []string
	for _, l := range c.linears() {
		if short := l.inLayer(); !slices.Contains(names, short) && adapted(l.name) {
			names = append(names, short)
		}
	}
	found := Method{Targets: strings.Join(names, ",")}
	if slices.Equal(found.adapted(c), Method{}.adapted(c)) {
		return ""
	}
	return found.Targets
}

// adapted lists the linear maps that LoRA changes.
func (m Method) adapted(c Config) []linear {
	if !m.Ranked() {
		return nil
	}
	names, _ := splitList("targets", m.Targets) // Validate has seen it
	if len(names) == 0 {
		names = c.arch().targets
	}
	return slices.DeleteFunc(c.linears(), func(x linear) bool {
		return m.Targets != AllLinear && !slices.ContainsFunc(names, func(n string) bool { return endsAt(x.name, n) })
	})
}

// whole lists the base's tensors that are trained as differences.
func (m Method) whole(c Config) []TensorSpec {
	also, _ := splitList("also", m.Also)
	return slices.DeleteFunc(c.BaseTensors(), func(t TensorSpec) bool {
		if c.Frozen(t.Name) {
			return true
		}
		if f := m.of().whole; f != nil && f(t.Name) {
			return false
		}
		return !slices.ContainsFunc(also, func(n string) bool { return covers(n, t.Name) })
	})
}
