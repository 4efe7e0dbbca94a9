package peft

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/starling-fl/starling/model"
)

// Bounds on an adapter's files, bytes.
const (
	maxConfig  = 8 << 20
	maxWeights = 4 << 30
)

// What PEFT puts before the names of the model that it wraps, and behind those of a module
// for its two matrices.
const (
	wrapped = "base_model.model."
	suffixA = ".lora_A.weight"
	suffixB = ".lora_B.weight"
)

// config is adapter_config.json as it is read; PEFT scales the product by lora_alpha/r.
type config struct {
	PeftType      string         `json:"peft_type"`
	R             int            `json:"r"`
	Alpha         float64        `json:"lora_alpha"`
	TargetModules any            `json:"target_modules"` // names, or one regular expression
	Exclude       any            `json:"exclude_modules"`
	Layers        any            `json:"layers_to_transform"` // a number or several
	LayersPattern any            `json:"layers_pattern"`      // a name or several
	ModulesToSave []string       `json:"modules_to_save"`
	Bias          string         `json:"bias"`
	FanInFanOut   bool           `json:"fan_in_fan_out"`
	InitWeights   any            `json:"init_lora_weights"`
	RankPattern   map[string]any `json:"rank_pattern"`
	AlphaPattern  map[string]any `json:"alpha_pattern"`
	UseRSLoRA     bool           `json:"use_rslora"`
	UseDoRA       bool           `json:"use_dora"`
	LoRABias      bool           `json:"lora_bias"`
	Replication   []any          `json:"layer_replication"`
	Invocation    []any          `json:"alora_invocation_tokens"`
	TrainedTokens any            `json:"trainable_token_indices"`
	Parameters    []any          `json:"target_parameters"`
	QALoRA        bool           `json:"use_qalora"`
	BDLoRA        any            `json:"use_bdlora"`
	Arrow         any            `json:"arrow_config"`
	KaSA          any            `json:"kasa_config"`
	MonteCLoRA    any            `json:"monteclora_config"`
}

// Load reads a PEFT LoRA adapter's folder, from whatever trained it, over the
// base: rank, scale and targets are the file's. Linear maps of the layers that it leaves
// as they are, where it adapts others of the same names, get updates of zero; what it
// changes of the base beside them (modules_to_save, a low-rank update of the pooler) is
// trained whole (model.Method.Also). labels are the classes
// of the task in the order of the head's outputs. A head that the adapter lacks
// (modules_to_save) is taken from head, which model.LoadHead reads from a base's folder,
// or starts fresh. Errors about what the files say wrap model.ErrPEFT.
func Load(fsys fs.FS, base *model.Base, t model.TaskKind, labels int, head map[string]model.Tensor) (*model.Adapter, error) {
	data, err := model.ReadFile(fsys, model.AdapterConfigFile, maxConfig)
	if err != nil {
		return nil, err
	}
	var p config
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrPEFT, model.AdapterConfigFile, err)
	}
	if err := p.refuse(base.Config); err != nil {
		return nil, err
	}
	weights, err := model.ReadFile(fsys, model.AdapterFile, maxWeights)
	if err != nil {
		return nil, err
	}
	st, err := model.ParseSafeTensors(weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model.AdapterFile, err)
	}
	s, err := newScales(p, st)
	if err != nil {
		return nil, err
	}
	c := base.Config.For(t)
	f := newFile(c, st, s)
	if f.choice, err = p.choice(); err != nil {
		return nil, err
	}
	m := model.Method{RMax: s.rank, Alpha: s.alpha(), Targets: c.TargetsOf(f.adapts), Also: f.also(), Task: t}
	l, err := model.NewLayout(base.Config, m, labels)
	if err != nil {
		return nil, err
	}
	return f.adapter(l, base, head)
}

// refuse refuses what is computed otherwise.
func (p config) refuse(c model.Config) error {
	start, named := p.InitWeights.(string)
	for _, bad := range []struct {
		set  bool
		what string
	}{
		{p.PeftType != "LORA", fmt.Sprintf("peft_type is %.40q, want LORA", p.PeftType)},
		{p.UseDoRA, "use_dora is set"},
		{p.FanInFanOut && !c.Turned(), "fan_in_fan_out is set, which is for maps that are stored as [in, out]: a gpt2's"},
		{p.Bias != "" && p.Bias != "none", fmt.Sprintf("bias is %.40q, want none", p.Bias)},
		{p.LoRABias, "lora_bias is set"},
		{len(p.Replication) > 0, "layer_replication makes another model of the base"},
		{len(p.Invocation) > 0, "alora_invocation_tokens adapt a part of each text alone"},
		{p.TrainedTokens != nil, "trainable_token_indices trains single rows of the embeddings: PEFT's merge_and_unload makes a base with them"},
		{len(p.Parameters) > 0, "target_parameters adapts parameters that are no linear map's weight"},
		{p.QALoRA, "use_qalora is set, which averages a map's input before A"},
		{p.BDLoRA != nil, "use_bdlora is set, whose matrices are blocks"},
		{p.Arrow != nil, "arrow_config chooses among adapters token by token"},
		{p.KaSA != nil, "kasa_config cuts the base's weights and puts a diagonal between A and B"},
		{p.MonteCLoRA != nil, "monteclora_config draws an adapter's weights"},
		{named && !slices.Contains(plainStarts, start), fmt.Sprintf("init_lora_weights is %.40q, which changes the base, want one of %q: "+
			"PEFT converts such an adapter where save_pretrained is given path_initial_model_for_weight_conversion", start, plainStarts)},
	} {
		if bad.set {
			return fmt.Errorf("%w: %s: %s", model.ErrPEFT, model.AdapterConfigFile, bad.what)
		}
	}
	return nil
}

// plainStarts are the values of init_lora_weights under which PEFT leaves the base as it
// is when it loads an adapter; true and false are others.
var plainStarts = []string{"gaussian", "eva", "orthogonal"}

// file is what an adapter's file holds, while it is taken over.
type file struct {
	config model.Config // for the task
	scales *scales
	choice *choice                    // nil: unknown
	left   map[string]model.RawTensor // not taken yet, by name without what PEFT and the model's class put before it
	prefix string                     // what that class put
}

func newFile(c model.Config, st *model.SafeTensors, s *scales) *file {
	f := &file{config: c, scales: s, left: map[string]model.RawTensor{}}
	for _, t := range st.Tensors {
		name := strings.TrimPrefix(t.Name, wrapped)
		for _, p := range c.Prefixes() {
			if rest, ok := strings.CutPrefix(name, p); ok && p != "" {
				name, f.prefix = rest, p
				break
			}
		}
		f.left[strings.Replace(name, ".modules_to_save.default.", ".", 1)] = t
	}
	return f
}

// find is the name in the file of a tensor of the base or a part of its update: the base's
// own, or the one in memory.
func (f *file) find(name string) (string, bool) {
	if _, ok := f.left[name]; ok {
		return name, true
	}
	name = f.config.Module(name)
	_, ok := f.left[name]
	return name, ok
}

// take is a tensor by the base's name for it.
func (f *file) take(name string) (model.RawTensor, bool) {
	name, ok := f.find(name)
	raw := f.left[name]
	delete(f.left, name)
	return raw, ok
}

// adapts reports whether the file has a low-rank update of a module.
func (f *file) adapts(module string) bool {
	_, a := f.find(module + suffixA)
	_, b := f.find(module + suffixB)
	return a || b
}

// moduleOf is the module whose tensor a name is; "" where it stands alone.
func moduleOf(tensor string) string { return tensor[:max(0, strings.LastIndexByte(tensor, '.'))] }

// also lists what else of the base the file changes, as a Method's Also: modules all of
// whose tensors it has, else single tensors.
func (f *file) also() string {
	layers := map[string]bool{}
	for _, name := range f.config.LinearMaps() {
		layers[name] = true
	}
	changed, parts := map[string]int{}, map[string]int{} // by module
	changes := func(tensor string) bool {
		module := moduleOf(tensor)
		_, whole := f.find(tensor)
		return whole || !layers[module] && tensor == module+".weight" && f.adapts(module)
	}
	for _, t := range f.config.BaseTensors() {
		parts[moduleOf(t.Name)]++
		if changes(t.Name) {
			changed[moduleOf(t.Name)]++
		}
	}
	var names []string
	for _, t := range f.config.BaseTensors() {
		name, module := t.Name, moduleOf(t.Name)
		if module != "" && changed[module] == parts[module] {
			name = module
		}
		if changes(t.Name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// adapter fills a layout, and refuses what it has no place for.
func (f *file) adapter(l *model.Layout, base *model.Base, head map[string]model.Tensor) (*model.Adapter, error) {
	a := model.NewAdapter(l, 0)
	if err := a.SetHead(head); err != nil {
		return nil, err
	}
	whole := a.Slice(l.Method.RMax)
	spans := l.Spans(l.Method.RMax)
	for i, s := range spans {
		var v []float32
		var err error
		switch s.Kind {
		case model.KindA:
			err = f.linear(l, spans[i], spans[i+1], whole)
		case model.KindDelta:
			v, err = f.delta(s.Entry, base)
		case model.KindHead: // where the file has none, the base's or a fresh one
			if raw, ok := f.take(s.Name); ok {
				v, err = values(raw, s.Shape)
			}
		}
		if err != nil {
			return nil, err
		}
		copy(whole[s.Offset:], v)
	}
	if len(f.left) > 0 {
		return nil, f.strange(l)
	}
	return a, a.SetSlice(l.Method.RMax, whole)
}

// linear fills in a linear map's update, its A and its B: one that the file does not
// have stays zero, as B is.
func (f *file) linear(l *model.Layout, a, b model.Span, whole []float32) error {
	module := strings.TrimSuffix(a.Name, suffixA)
	named, known := f.names(module)
	there := f.adapts(module)
	if there && known && !named {
		name, _ := f.find(module + suffixA)
		return fmt.Errorf("%w: tensor %q adapts a module that %s leaves out (target_modules, exclude_modules, layers_to_transform): PEFT would not load it",
			model.ErrPEFT, f.left[name].Name, model.AdapterConfigFile)
	}
	if !there && !named {
		return nil
	}
	for _, s := range []model.Span{a, b} {
		raw, ok := f.take(s.Name)
		if !ok {
			return fmt.Errorf("%w: %s has no tensor for %s, which target_modules names", model.ErrPEFT, model.AdapterFile, s.Name)
		}
		v, err := finite(raw)
		if err == nil {
			v, err = f.scales.fit(l, s.Entry, raw, v, whole[s.Offset:s.Offset+s.Len])
		}
		if err != nil {
			return err
		}
		copy(whole[s.Offset:], v)
	}
	return nil
}

// names reports whether the configuration names a linear map of a layer, and whether that is
// known.
func (f *file) names(module string) (named, known bool) {
	if f.choice == nil {
		return false, false
	}
	return f.choice.has(f.prefix+module) || f.choice.has(f.prefix+f.config.Module(module)), true
}

// delta is the difference that the file makes to a tensor of the base.
func (f *file) delta(e model.Entry, base *model.Base) ([]float32, error) {
	name := e.Changes()
	if raw, ok := f.take(name); ok {
		v, err := values(raw, e.Shape)
		if err != nil {
			return nil, err
		}
		frozen, err := base.Tensor(name)
		if err != nil {
			return nil, err
		}
		v = slices.Clone(v)
		for i, x := range frozen {
			v[i] -= x
		}
		return v, nil
	}
	module := moduleOf(name)
	if !f.adapts(module) || name != module+".weight" {
		return nil, nil
	}
	var low [2][]float32
	rank, scale := 0, 0.0
	for k, suffix := range []string{suffixA, suffixB} {
		raw, ok := f.take(module + suffix)
		if !ok {
			return nil, fmt.Errorf("%w: %s has no tensor for %s", model.ErrPEFT, model.AdapterFile, module+suffix)
		}
		var err error
		if k == 0 && len(raw.Shape) == 2 && len(e.Shape) == 2 {
			rank = raw.Shape[0]
			if scale, err = f.scales.scale(moduleIn(raw), max(1, rank)); err != nil {
				return nil, err
			}
		}
		if rank < 1 {
			return nil, fmt.Errorf("%w: tensor %q has shape %v: only linear maps have low-rank updates here", model.ErrPEFT, raw.Name, raw.Shape)
		}
		if low[k], err = values(raw, [][]int{{rank, e.Shape[1]}, {e.Shape[0], rank}}[k]); err != nil {
			return nil, err
		}
	}
	sum := make([]float32, model.Elements(e.Shape))
	model.AddProduct(sum, low[1], low[0], rank, float32(scale))
	return sum, nil
}

// values are a tensor's, of the shape that is wanted.
func values(raw model.RawTensor, want []int) ([]float32, error) {
	if !slices.Equal(raw.Shape, want) {
		return nil, fmt.Errorf("%w: tensor %q has shape %v, want %v", model.ErrPEFT, raw.Name, raw.Shape, want)
	}
	return finite(raw)
}

// finite are a tensor's values.
func finite(raw model.RawTensor) ([]float32, error) {
	v, err := raw.Float32()
	if err != nil {
		return nil, err
	}
	for _, x := range v {
		if x-x != 0 {
			return nil, fmt.Errorf("%w: tensor %q has a value %v", model.ErrPEFT, raw.Name, x)
		}
	}
	return v, nil
}

// strange says why the first of the tensors that are left is not read.
func (f *file) strange(l *model.Layout) error {
	name := slices.Sorted(maps.Keys(f.left))[0]
	why := "it is not a tensor of the base's or of its head's"
	module, low := strings.CutSuffix(name, suffixA)
	if !low {
		module, low = strings.CutSuffix(name, suffixB)
	}
	switch {
	case strings.Contains(name, "lora_embedding_"):
		why = "a low-rank update of a table of embeddings, where only linear maps have one"
	case low && slices.ContainsFunc(l.Entries(), func(e model.Entry) bool { return e.Kind == model.KindHead && moduleOf(e.Name) == module }):
		why = "a low-rank update of the head, which is trained whole: PEFT saves it so with modules_to_save"
	case low:
		why = "a low-rank update of what is not a linear map of the base's"
	case strings.Contains(name, "lora_"):
		why = "a part of another method than LoRA"
	}
	return fmt.Errorf("%w: %d tensors of %s are not read, %.120q the first: %s", model.ErrPEFT, len(f.left), model.AdapterFile, f.left[name].Name, why)
}
