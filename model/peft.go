package model

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// peftPrefix is what PEFT puts before the names of the model that it wraps.
const peftPrefix = "base_model.model."

// ErrPEFT is an adapter of PEFT's that Starling cannot take.
var ErrPEFT = errors.New("model: unusable PEFT adapter")

// peftConfig is adapter_config.json as it is written; model/peft reads it. PEFT scales the product by lora_alpha/r, r being
// the rank that the file holds: see Method.AlphaAt.
type peftConfig struct {
	PeftType      string         `json:"peft_type"`
	TaskType      any            `json:"task_type"` // of PEFT, which chooses the class that wraps the model; nil: the plain one
	R             int            `json:"r"`
	Alpha         float64        `json:"lora_alpha"`
	Dropout       float64        `json:"lora_dropout"`
	TargetModules any            `json:"target_modules"` // names, or one regular expression
	ModulesToSave []string       `json:"modules_to_save"`
	Bias          string         `json:"bias"`
	BaseModel     string         `json:"base_model_name_or_path"`
	FanInFanOut   bool           `json:"fan_in_fan_out"`
	InferenceMode bool           `json:"inference_mode"`
	InitWeights   any            `json:"init_lora_weights"`
	RankPattern   map[string]any `json:"rank_pattern"`
	AlphaPattern  map[string]any `json:"alpha_pattern"`
	UseRSLoRA     bool           `json:"use_rslora"`
	UseDoRA       bool           `json:"use_dora"`
	LoRABias      bool           `json:"lora_bias"`
	Replication   []any          `json:"layer_replication"`
	Invocation    []any          `json:"alora_invocation_tokens"`
}

// newPEFTConfig describes an adapter cut to a rank. Where transformers has no class
// for the model, the targets are a regular expression that matches nothing in its
// own ones: the adapter is then refused there, and not applied to a model with
// another head.
func newPEFTConfig(l *Layout, rank int) peftConfig {
	c := peftConfig{
		PeftType: "LORA", TaskType: l.Method.Task.of().peftType, R: rank, Alpha: l.Method.AlphaAt(rank), Bias: "none",
		BaseModel: CheckpointBase, InferenceMode: true, InitWeights: true, FanInFanOut: l.Config.Turned(),
		RankPattern: map[string]any{}, AlphaPattern: map[string]any{},
	}
	targets := l.peftTargets()
	c.TargetModules = targets
	if !l.Config.standard() {
		c.TargetModules = regexp.QuoteMeta(ownPrefix) + `(?:.*\.)?(?:` + strings.ReplaceAll(regexp.QuoteMeta(strings.Join(targets, ",")), ",", "|") + ")"
	}
	for _, e := range l.entries {
		if m, _, _ := strings.Cut(e.Name, "."); l.savesHead(e) && !slices.Contains(c.ModulesToSave, m) {
			c.ModulesToSave = append(c.ModulesToSave, m)
		}
	}
	return c
}

// savesHead reports whether PEFT saves an entry as it is, being of the head. A module that
// is tied to the word embeddings, as the head of masked words is, it cannot load again:
// that head goes with the base.
func (l *Layout) savesHead(e Entry) bool { return e.Kind == KindHead && !l.Method.Task.of().tied }

// plainLoRA reports whether a LoRA adapter and a head are all there is.
func (l *Layout) plainLoRA() bool {
	return l.holdsLoRA() && !slices.ContainsFunc(l.entries, func(e Entry) bool { return e.Kind == KindDelta })
}

// holdsLoRA reports whether they are all there is beside modules that are trained whole.
func (l *Layout) holdsLoRA() bool { return l.Method.Ranked() && !l.Method.Boxes() }

// Module returns transformers' name of a tensor or module of the base.
func (c Config) Module(name string) string {
	if m := c.arch().modules; m != nil {
		return m.Replace(name)
	}
	return name
}

// Turned reports whether the base's linear maps are stored as [in, out]: a GPT-2's.
func (c Config) Turned() bool { return c.arch().turned != nil }

// Prefixes returns the prefixes of the base's tensor names in transformers' classes with a head ("" for none), and
// in Starling's own model.
func (c Config) Prefixes() []string { return []string{c.arch().prefix, ownPrefix} }

// peftName is the name that PEFT gives a trainable tensor.
func (c Config) peftName(e Entry) string {
	if e.Kind == KindHead {
		return peftPrefix + e.Name
	}
	return peftPrefix + c.checkpointPrefix() + c.Module(e.Name)
}

// EncodeAdapter packs an adapter at r_max as safetensors with PEFT's names.
func EncodeAdapter(a *Adapter) ([]byte, error) {
	st, err := a.at(a.layout.Method.RMax, func(Entry) bool { return true })
	if err != nil {
		return nil, err
	}
	return st.Encode()
}

// at are an adapter's tensors cut to rank b, 0..r_max, of some entries.
func (a *Adapter) at(b int, in func(Entry) bool) (*SafeTensors, error) {
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}}
	v := a.Slice(b)
	for _, s := range a.layout.Spans(b) {
		if s.Len == 0 || !in(s.Entry) {
			continue
		}
		if err := st.Add(a.layout.Config.peftName(s.Entry), "F32", s.Shape, v[s.Offset:s.Offset+s.Len]); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// PEFTFiles returns the adapter of a base at rank b, 1..r_max, as a folder that PEFT loads:
// adapter_config.json and adapter_model.safetensors. Tensors that are trained whole, besides the
// head, are in it by module.
func PEFTFiles(a *Adapter, base *Base, b int) (map[string][]byte, error) {
	l := a.layout
	if err := l.CheckRank(b); err != nil {
		return nil, err
	}
	if b == 0 {
		return nil, fmt.Errorf("%w: rank 0 is the head alone, which PEFT has no adapter for: export it merged", ErrPEFT)
	}
	if !l.holdsLoRA() {
		return nil, fmt.Errorf("%w: a LoRA adapter holds neither what method %s trains nor %s: export it merged", ErrPEFT,
			cmp.Or(l.Method.Kind, MethodLoRA), BoxEmbeddings)
	}
	whole, err := l.wholeModules()
	if err != nil {
		return nil, err
	}
	st, err := a.at(b, func(e Entry) bool { return e.Kind != KindDelta && (e.Kind != KindHead || l.savesHead(e)) })
	if err == nil {
		err = a.addWhole(st, base, whole)
	}
	if err != nil {
		return nil, err
	}
	weights, err := st.Encode()
	if err != nil {
		return nil, err
	}
	p := newPEFTConfig(l, b)
	for _, m := range whole {
		p.ModulesToSave = append(p.ModulesToSave, l.inMemory(m))
	}
	config, err := marshalFile(p)
	return map[string][]byte{AdapterFile: weights, AdapterConfigFile: config}, err
}

// PEFTBase is the release of the base that PEFTFiles' adapter is loaded over.
func (c *Checkpoint) PEFTBase() Release {
	r := Release{Base: c.Base, Labels: c.Labels, Task: c.Method.Task}
	for i, e := range c.Adapter.layout.entries {
		if e.Kind == KindHead && !c.Adapter.layout.savesHead(e) {
			if r.Values == nil {
				r.Values = map[string][]float32{}
			}
			r.Values[e.Name] = c.Adapter.tensors[i]
		}
	}
	return r
}

// ParseAdapter reads what EncodeAdapter wrote, for the given layout. A tensor
// that is missing or does not fit is refused by name; extra ones as well.
func ParseAdapter(l *Layout, data []byte) (*Adapter, error) {
	st, err := ParseSafeTensors(data)
	if err != nil {
		return nil, err
	}
	a := &Adapter{layout: l}
	for _, e := range l.entries {
		v, err := adapterTensor(st, l.Config.peftName(e), e.Shape)
		if err != nil {
			return nil, err
		}
		a.tensors = append(a.tensors, v)
	}
	if len(st.Tensors) != len(l.entries) {
		return nil, fmt.Errorf("model: adapter has %d tensors, want %d", len(st.Tensors), len(l.entries))
	}
	return a, nil
}

func adapterTensor(st *SafeTensors, name string, shape []int) ([]float32, error) {
	raw, ok := st.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("model: adapter has no tensor %q", name)
	}
	if !slices.Equal(raw.Shape, shape) {
		return nil, fmt.Errorf("model: adapter tensor %q has shape %v, want %v", name, raw.Shape, shape)
	}
	return raw.Float32()
}

// EncodeSlice packs the adapter cut to rank b under the layout's own names, with
// rank, alpha and the scale in the metadata.
func EncodeSlice(a *Adapter, b int) ([]byte, error) {
	if err := a.layout.CheckRank(b); err != nil {
		return nil, err
	}
	st := &SafeTensors{Metadata: map[string]string{"format": "pt", "rank": fmt.Sprint(b), "alpha": fmt.Sprint(a.layout.Method.Alpha)}}
	if b > 0 {
		st.Metadata["scale"] = fmt.Sprint(a.layout.Method.Scale(b))
	}
	v := a.Slice(b)
	for _, s := range a.layout.Spans(b) {
		if s.Len == 0 {
			continue
		}
		if err := st.Add(s.Name, "F32", s.Shape, v[s.Offset:s.Offset+s.Len]); err != nil {
			return nil, err
		}
	}
	return st.Encode()
}
