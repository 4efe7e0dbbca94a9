package main

import (
	"errors"
	"hash/fnv"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// benchCase is one program to time: a matrix product or a training step.
type benchCase struct {
	Name string       `json:"name"`
	GEMM []int        `json:"gemm,omitempty"` // M, K, N
	Step *nn.StepSpec `json:"step,omitempty"`
	NF4  bool         `json:"nf4,omitempty"` // frozen matrices in 4 bits
	// Full rows have no padding, which programs leave out and others compute. lab/bench/wasm/unpadded.sh runs these.
	Full bool `json:"full,omitempty"`
	// Manifest is of the program for wazero: what peers compute the same step of.
	Manifest *wasm.Manifest `json:"manifest,omitempty"`
}

// cases lists what is timed. The tiny shape is the default model's, BERT-small
// is 4 layers, 512 wide, 8 heads, vocabulary 30522.
func cases() []benchCase {
	tiny, small := model.BERT(2048, 128, 2, 4, 128), model.BERT(30522, 512, 4, 8, 512)
	step := func(c model.Config, batch, seq int) *nn.StepSpec {
		return &nn.StepSpec{Config: c, Method: model.Method{RMax: 16, Alpha: 16}, Classes: 4, Rank: 16,
			Spec: training.Spec{Batch: batch, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: seq}
	}
	return []benchCase{
		{Name: "gemm-512x512x512", GEMM: []int{512, 512, 512}},
		{Name: "gemm-512x512x16", GEMM: []int{512, 512, 16}},
		{Name: "gemm-512x16x512", GEMM: []int{512, 16, 512}},
		{Name: "tiny-b8-s64", Step: step(tiny, 8, 64)},
		{Name: "tiny-b16-s32", Step: step(tiny, 16, 32)},
		{Name: "small-b8-s64", Step: step(small, 8, 64)},
		{Name: "small-nf4-b8-s64", Step: step(small, 8, 64), NF4: true},
		{Name: "tiny-full-b8-s64", Step: step(tiny, 8, 64), Full: true},
		{Name: "small-full-b8-s64", Step: step(small, 8, 64), Full: true},
		{Name: "minilm-full-b8-s128", Step: step(model.BERT(30522, 384, 6, 12, 512), 8, 128), Full: true},
		{Name: "vit-full-b4-s197", Step: &nn.StepSpec{Config: vitSmall(), Method: model.Method{RMax: 16, Alpha: 16, Task: model.TaskImage},
			Classes: 4, Rank: 16, Spec: training.Spec{Batch: 4, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: 1}, Full: true},
		{Name: "t5-full-b4-s256", Step: &nn.StepSpec{Config: t5Small(), Method: model.Method{RMax: 16, Alpha: 16, Task: model.TaskAnswer, Answer: 16},
			Rank: 16, Spec: training.Spec{Batch: 4, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: 256}, Full: true},
		{Name: "vt5-nf4-b1-s256", Step: &nn.StepSpec{Config: vt5Small(), Method: model.Method{RMax: 6, Alpha: 16, Task: model.TaskAnswer, Answer: 16,
			Also: "visual_emb_matcher"}, Rank: 6, Spec: training.Spec{Batch: 1, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: 256}, NF4: true, Full: true},
		{Name: "patches-nf4-b1-s256", Step: &nn.StepSpec{Config: patchesSmall(), Method: model.Method{RMax: 6, Alpha: 16, Task: model.TaskAnswer, Answer: 16,
			Also: "spatial_emb_matcher,patch_embed.proj"}, Rank: 6, Spec: training.Spec{Batch: 1, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: 256}, NF4: true, Full: true},
		{Name: "smollm2-full-b1-s256", Step: decoderStep(smollm2(), 1, 256), Full: true},
		{Name: "smollm2-full-b4-s256", Step: decoderStep(smollm2(), 4, 256), Full: true},
		{Name: "smollm2-2g-b4-s256", Step: within(2048, decoderStep(smollm2(), 4, 256)), Full: true},
		{Name: "smollm2-1g-b1-s256", Step: within(1024, decoderStep(smollm2(), 1, 256)), Full: true},
		{Name: "smollm2-full-b1-s128", Step: decoderStep(smollm2(), 1, 128), Full: true},
		{Name: "smollm2-nf4-b1-s256", Step: decoderStep(smollm2(), 1, 256), NF4: true, Full: true},
		{Name: "smollm2-nf4-b4-s256", Step: decoderStep(smollm2(), 4, 256), NF4: true, Full: true},
		{Name: "qwen2-nf4-b1-s128", Step: decoderStep(qwen2(), 1, 128), NF4: true, Full: true},
		{Name: "words-demo-b16-1s", Step: wordsStep(demoHubert(), 16, model.Method{Kind: model.MethodFull, RMax: 1, Alpha: 1}), Full: true},
		{Name: "words-small-b8-1s", Step: wordsStep(smallHubert(), 8, model.Method{RMax: 8, Alpha: 16}), Full: true},
		{Name: "words-distilhubert-b4-1s", Step: wordsStep(model.NewHubert(512, 768, 2), 4, model.Method{RMax: 8, Alpha: 16}), Full: true},
		{Name: "kept-small-b8-1s", Step: keptStep(smallHubert(), 8), Full: true},
		{Name: "kept-distilhubert-b4-1s", Step: keptStep(model.NewHubert(512, 768, 2), 4), Full: true},
		{Name: "base-full-b8-s64", Step: step(model.BERT(30522, 768, 12, 12, 512), 8, 64), Full: true},
		{Name: "base-full-b2-s128", Step: step(model.BERT(30522, 768, 12, 12, 512), 2, 128), Full: true},
		{Name: "base-full-b2-s512", Step: step(model.BERT(30522, 768, 12, 12, 512), 2, 512), Full: true},
	}
}

// vitSmall is 12 layers, 384 wide, over 14 x 14 patches of 16 x 16 pixels and a token for the class.
func vitSmall() model.Config {
	c := model.NewViT(384, 12, 224, 16, 3)
	c.NumAttentionHeads = 6
	return c
}

// smollm2 is SmolLM2-135M's shape: 30 layers, 576 wide, three heads to a key.
func smollm2() model.Config {
	c := model.Llama(49152, 576, 30, 9, 8192)
	c.IntermediateSize, c.Decoder.KVHeads, c.Decoder.Rope.Theta = 1536, 3, 1e5
	return c
}

// qwen2 is Qwen2.5-0.5B's shape: 24 layers, 896 wide, seven heads to a key, biases of what is attended.
func qwen2() model.Config {
	c := model.Llama(151936, 896, 24, 14, 32768)
	c.ModelType, c.IntermediateSize, c.Decoder.KVHeads, c.Decoder.Rope.Theta, c.Decoder.Biases = "qwen2", 4864, 2, 1e6, true
	return c
}

// decoderStep is one over so many texts of so many tokens.
func decoderStep(c model.Config, batch, tokens int) *nn.StepSpec {
	return &nn.StepSpec{Config: c, Method: model.Method{RMax: 8, Alpha: 16, Task: model.TaskCausal}, Rank: 8,
		Spec: training.Spec{Batch: batch, Optimizer: training.AdamW, WeightDecay: 0.01}, Sequence: tokens}
}

// wordsStep is one over recordings of a second, of ten words.
func wordsStep(c model.Config, batch int, m model.Method) *nn.StepSpec {
	m.Task = model.TaskListen
	return &nn.StepSpec{Config: c, Method: m, Classes: 10, Rank: m.RMax, Spec: training.Spec{Batch: batch, Optimizer: training.AdamW, WeightDecay: 0.01},
		Sequence: c.Speech.Frames(c.Speech.Rate)}
}

// keptStep is one by LoRA over recordings that were heard before: it is given what the convolutions made of them.
func keptStep(c model.Config, batch int) *nn.StepSpec {
	s := wordsStep(c, batch, model.Method{RMax: 8, Alpha: 16})
	s.Keep = true
	return s
}

// demoHubert is what starling demo --task listen trains whole: three convolutions at 8,000 samples a second.
func demoHubert() model.Config {
	c := model.NewHubert(32, 48, 2)
	c.NumAttentionHeads, c.IntermediateSize = 2, 96
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{32, 48, 48}, model.Convolutions{32, 8, 4}, model.Convolutions{8, 8, 4}
	s.Rate, s.Positions, s.Groups, s.Projector = 8000, 8, 4, 32
	return c
}

// smallHubert is of DistilHuBERT's seven convolutions, a quarter as wide, before two layers of 256.
func smallHubert() model.Config {
	c := model.NewHubert(128, 256, 2)
	c.NumAttentionHeads = 4
	return c
}

// t5Small is 6 and 6 layers, 512 wide.
func t5Small() model.Config {
	return model.Config{ModelType: "t5", VocabSize: 32128, HiddenSize: 512, NumHiddenLayers: 6, NumAttentionHeads: 8, IntermediateSize: 2048,
		LayerNormEps: 1e-6, HiddenAct: "relu",
		T5: model.T5{DecoderLayers: 6, KeySize: 64, Buckets: 32, MaxDistance: 128, Scaled: true, End: 1}}
}

// patchesSmall is a T5-small that reads patches of pages as Federated DocVQA's T5 does.
func patchesSmall() model.Config {
	c := t5Small()
	c.T5.Boxes, c.T5.LinearBoxes = 1001, true
	c.T5.Patched.ViT = model.ViT{ImageSize: model.Square(224), PatchSize: model.Square(16), Channels: 3,
		Mean: [3]float64{0.485, 0.456, 0.406}, Std: [3]float64{0.229, 0.224, 0.225}}
	return c
}

// vt5Small is a T5-small that looks at pages by DiT-base.
func vt5Small() model.Config {
	c := t5Small()
	half := [3]float64{0.5, 0.5, 0.5}
	c.T5.Visual = model.Visual{HiddenSize: 768, NumHiddenLayers: 12, NumAttentionHeads: 12, IntermediateSize: 3072, LayerNormEps: 1e-12,
		HiddenAct: "gelu", ViT: model.ViT{ImageSize: model.Square(224), PatchSize: model.Square(16), Channels: 3, Mean: half, Std: half,
			BEiT: model.BEiT{NoKeyBias: true, Scaled: true, NoNorm: true}}}
	return c
}

// compile makes the program of a case for a host.
func (c *benchCase) compile(host string, fused bool) ([]byte, error) {
	spec := compiler.Spec{Name: c.Name, Host: host, Fused: fused}
	if c.GEMM != nil {
		spec.Outputs = []compiler.Output{{Name: "c"}}
		m, k, n := c.GEMM[0], c.GEMM[1], c.GEMM[2]
		return compiler.Compile(func(g *graph.Graph) []*graph.Node {
			a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, m, k))
			b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, k, n))
			return []*graph.Node{graph.Dot(a, b).Product()}
		}, spec)
	}
	// A first build, on the compiler's own backend, tells names and roles.
	params, outputs, err := c.Step.Build(graph.NewGraph(compiler.New(), c.Name))
	if err != nil {
		return nil, err
	}
	for _, p := range params {
		switch p.Role {
		case nn.State:
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.State})
		case nn.Frozen:
			matrix := len(p.Shape) == 2 && !strings.HasPrefix(p.Name, "pooler.")
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: compiler.Frozen, NF4: c.NF4 && matrix})
		}
	}
	for _, o := range outputs {
		spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
	}
	step := *c.Step
	spec.Memory = step.Memory << 20
	var code []byte
	for _, step.Recompute = range nn.Recomputes(step.Memory) { // as package program does
		code, err = compiler.Compile(func(g *graph.Graph) []*graph.Node {
			_, outputs, err := step.Build(g)
			if err != nil {
				panic(err)
			}
			nodes := make([]*graph.Node, len(outputs))
			for i, o := range outputs {
				nodes[i] = o.Node
			}
			return nodes
		}, spec)
		if !errors.Is(err, compiler.ErrMemory) {
			break
		}
	}
	return code, err
}

// within is a step whose program may take so many MiB: see training.memory.
func within(mib int, s *nn.StepSpec) *nn.StepSpec {
	s.Memory = mib
	return s
}

// floats gives the value of a float32 tensor: the same for every engine, as it
// depends on the name and the index alone.
func floats(name string, n int) []float32 {
	v := make([]float32, n)
	switch {
	case strings.HasSuffix(name, ".adam_m"), strings.HasSuffix(name, ".adam_v"):
		return v
	case name == trainer.InputRate:
		return []float32{1e-3}
	case name == trainer.InputStep, name == trainer.InputKept:
		return []float32{1}
	case name == model.DecoderNorm, strings.HasSuffix(name, "LayerNorm.weight"), strings.HasSuffix(name, "layer_norm.weight"),
		strings.Contains(name, "layernorm") && strings.HasSuffix(name, ".weight"), name == model.SpeechPositionsLength,
		name == task.Weights, name == task.Keep:
		for i := range v {
			v[i] = 1
		}
		return v
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	state := h.Sum64()
	for i := range v { // uniform within +-0.06: a spread of about 0.035
		state = state*6364136223846793005 + 1442695040888963407
		v[i] = float32(float64(state>>40)/(1<<24)-.5) * .12
	}
	return v
}

// tokens fills rows of ids; the last quarter of every row is padding, where the case has any.
func (c *benchCase) tokens() []int32 {
	seq := c.Step.Sequence
	v := make([]int32, c.Step.Batch*seq)
	for i := range v {
		if c.Full || i%seq < seq-seq/4 {
			v[i] = int32(1 + (i*7919+13)%(c.Step.Config.VocabSize-1))
		}
	}
	return v
}

// labels are classes, or tokens of answers if there are none.
func (c *benchCase) labels(n int) []int32 {
	most := c.Step.Classes
	if most == 0 {
		most = c.Step.Config.VocabSize
	}
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i * max(1, most/257) % most)
	}
	return v
}

// places are all of a text's but the last, text by text.
func (c *benchCase) places(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i % (n / c.Step.Batch))
	}
	return v
}

// gemmFLOPs counts a multiply-add as two.
func gemmFLOPs(mkn []int) uint64 {
	return uint64(2 * math.Abs(float64(mkn[0]*mkn[1]*mkn[2])))
}
