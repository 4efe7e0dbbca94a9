package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// LoadPEFT reads a PEFT LoRA adapter's folder, from whatever trained it, over the
// base: rank, scale and targets are the file's. Linear maps of the layers that it leaves
// as they are, where it adapts others of the same names, get updates of zero; what it
// changes of the base beside them (modules_to_save, a low-rank update of the pooler) is
// trained whole (Method.Also). labels are the classes
// of the task in the order of the head's outputs. A head that the adapter lacks
// (modules_to_save) is taken from head, which LoadHead reads from a base's folder,
// or starts fresh.
func LoadPEFT(fsys fs.FS, base *Base, t TaskKind, labels int, head map[string]Tensor) (*Adapter, error) {
	data, err := readFile(fsys, AdapterConfigFile, maxJSON)
	if err != nil {
		return nil, err
	}
	var p peftConfig
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPEFT, AdapterConfigFile, err)
	}
	if err := p.refuse(base.Config); err != nil {
		return nil, err
	}
	weights, err := readFile(fsys, AdapterFile, maxBase)
	if err != nil {
		return nil, err
	}
	st, err := ParseSafeTensors(weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AdapterFile, err)
	}
	scales, err := newPEFTScales(p, st)
	if err != nil {
		return nil, err
	}
	c := base.Config.For(t)
	f := newPEFTFile(c, st, scales)
	if f.choice, err = p.choice(); err != nil {
		return nil, err
	}
	m := Method{RMax: scales.rank, Alpha: scales.alpha(), Targets: f.targets(), Also: f.also(), Task: t}
	l, err := NewLayout(base.Config, m, labels)
	if err != nil {
		return nil, err
	}
	return f.adapter(l, base, head)
}

// refuse refuses what is computed otherwise.
func (p peftConfig) refuse(c Config) error {
	start, named := p.InitWeights.(string)
	for _, bad := range []struct {
		set  bool
		what string
	}{
		{p.PeftType != "LORA", fmt.Sprintf("peft_type is %.40q, want LORA", p.PeftType)},
		{p.UseDoRA, "use_dora is set"},
		{p.FanInFanOut && c.arch().turned == nil, "fan_in_fan_out is set, which is for maps that are stored as [in, out]: a gpt2's"},
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
			return fmt.Errorf("%w: %s: %s", ErrPEFT, AdapterConfigFile, bad.what)
		}
	}
	return nil
}

// plainStarts are the values of init_lora_weights under which PEFT leaves the base as it
// is when it loads an adapter; true and false are others.
var plainStarts = []string{"gaussian", "eva", "orthogonal"}

// peftFile is what an adapter's file holds, while it is taken over.
type peftFile struct {
	config Config // for the task
	scales *peftScales
	choice *peftChoice          // nil: unknown
	left   map[string]RawTensor // not taken yet, by name without what PEFT and the model's class put before it
	prefix string               // what that class put
}

func newPEFTFile(c Config, st *SafeTensors, s *peftScales) *peftFile {
	f := &peftFile{config: c, scales: s, left: map[string]RawTensor{}}
	for _, t := range st.Tensors {
		name := strings.TrimPrefix(t.Name, peftPrefix)
		for _, p := range []string{c.arch().prefix, ownPrefix} {
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
func (f *peftFile) find(name string) (string, bool) {
	if _, ok := f.left[name]; ok {
		return name, true
	}
	name = f.config.module(name)
	_, ok := f.left[name]
	return name, ok
}

// take is a tensor by the base's name for it.
func (f *peftFile) take(name string) (RawTensor, bool) {
	name, ok := f.find(name)
	raw := f.left[name]
	delete(f.left, name)
	return raw, ok
}

// adapts says whether the file has a low-rank update of a module.
func (f *peftFile) adapts(module string) bool {
	_, a := f.find(module + loraA)
	_, b := f.find(module + loraB)
	return a || b
}

// targets lists the linear maps of layers that the file adapts, as a Method's targets;
// "" for those that a method has without any.
func (f *peftFile) targets() string {
	var names []string
	for _, l := range f.config.linears() {
		if short := l.inLayer(); !slices.Contains(names, short) && f.adapts(l.name) {
			names = append(names, short)
		}
	}
	found := Method{Targets: strings.Join(names, ",")}
	if slices.Equal(found.adapted(f.config), Method{}.adapted(f.config)) {
		return ""
	}
	return found.Targets
}

// also lists what else of the base the file changes, as a Method's Also: modules all of
// whose tensors it has, else single tensors.
func (f *peftFile) also() string {
	layers := map[string]bool{}
	for _, l := range f.config.linears() {
		layers[l.name] = true
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
func (f *peftFile) adapter(l *Layout, base *Base, head map[string]Tensor) (*Adapter, error) {
	a := NewAdapter(l, 0)
	if err := a.setHead(head); err != nil {
		return nil, err
	}
	for i, e := range l.entries {
		var v []float32
		var err error
		switch e.Kind {
		case KindA: // followed by its B
			err = f.linear(l, i, a)
		case KindDelta:
			v, err = f.delta(e, base)
		case KindHead: // where the file has none, the base's or a fresh one
			if raw, ok := f.take(e.Name); ok {
				v, err = values(raw, e.Shape)
			}
		}
		if err != nil {
			return nil, err
		}
		if v != nil {
			a.tensors[i] = v
		}
	}
	if len(f.left) > 0 {
		return nil, f.strange(l)
	}
	return a, nil
}

// linear fills in a linear map's update at entries i and i+1: one that the file does not
// have stays zero, as B is.
func (f *peftFile) linear(l *Layout, i int, a *Adapter) error {
	module := strings.TrimSuffix(l.entries[i].Name, loraA)
	named, known := f.names(module)
	there := f.adapts(module)
	if there && known && !named {
		name, _ := f.find(module + loraA)
		return fmt.Errorf("%w: tensor %q adapts a module that %s leaves out (target_modules, exclude_modules, layers_to_transform): PEFT would not load it",
			ErrPEFT, f.left[name].Name, AdapterConfigFile)
	}
	if !there && !named {
		return nil
	}
	for k, e := range l.entries[i : i+2] {
		raw, ok := f.take(e.Name)
		if !ok {
			return fmt.Errorf("%w: %s has no tensor for %s, which target_modules names", ErrPEFT, AdapterFile, e.Name)
		}
		v, err := finite(raw)
		if err == nil {
			v, err = f.scales.fit(l, e, raw, v, a.tensors[i+k])
		}
		if err != nil {
			return err
		}
		a.tensors[i+k] = v
	}
	return nil
}

// names says whether the configuration names a linear map of a layer, and whether that is
// known.
func (f *peftFile) names(module string) (named, known bool) {
	if f.choice == nil {
		return false, false
	}
	return f.choice.has(f.prefix+module) || f.choice.has(f.prefix+f.config.module(module)), true
}

// delta is the difference that the file makes to a tensor of the base.
func (f *peftFile) delta(e Entry, base *Base) ([]float32, error) {
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
	for k, suffix := range []string{loraA, loraB} {
		raw, ok := f.take(module + suffix)
		if !ok {
			return nil, fmt.Errorf("%w: %s has no tensor for %s", ErrPEFT, AdapterFile, module+suffix)
		}
		var err error
		if k == 0 && len(raw.Shape) == 2 && len(e.Shape) == 2 {
			rank = raw.Shape[0]
			if scale, err = f.scales.scale(peftModule(raw), max(1, rank)); err != nil {
				return nil, err
			}
		}
		if rank < 1 {
			return nil, fmt.Errorf("%w: tensor %q has shape %v: only linear maps have low-rank updates here", ErrPEFT, raw.Name, raw.Shape)
		}
		if low[k], err = values(raw, [][]int{{rank, e.Shape[1]}, {e.Shape[0], rank}}[k]); err != nil {
			return nil, err
		}
	}
	sum := make([]float32, Elements(e.Shape))
	addProduct(sum, low[1], low[0], rank, float32(scale))
	return sum, nil
}

// values are a tensor's, of the shape that is wanted.
func values(raw RawTensor, want []int) ([]float32, error) {
	if !slices.Equal(raw.Shape, want) {
		return nil, fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrPEFT, raw.Name, raw.Shape, want)
	}
	return finite(raw)
}

// finite are a tensor's values.
func finite(raw RawTensor) ([]float32, error) {
	v, err := raw.Float32()
	if err != nil {
		return nil, err
	}
	for _, x := range v {
		if x-x != 0 {
			return nil, fmt.Errorf("%w: tensor %q has a value %v", ErrPEFT, raw.Name, x)
		}
	}
	return v, nil
}

// strange says why the first of the tensors that are left is not read.
func (f *peftFile) strange(l *Layout) error {
	name := slices.Sorted(maps.Keys(f.left))[0]
	why := "it is no tensor of the base's or of its head's"
	module, low := strings.CutSuffix(name, loraA)
	if !low {
		module, low = strings.CutSuffix(name, loraB)
	}
	switch {
	case strings.Contains(name, "lora_embedding_"):
		why = "a low-rank update of a table of embeddings, where only linear maps have one"
	case low && slices.ContainsFunc(l.entries, func(e Entry) bool { return e.Kind == KindHead && moduleOf(e.Name) == module }):
		why = "a low-rank update of the head, which is trained whole: PEFT saves it so with modules_to_save"
	case low:
		why = "a low-rank update of what is no linear map of the base's"
	case strings.Contains(name, "lora_"):
		why = "a part of another method than LoRA"
	}
	return fmt.Errorf("%w: %d tensors of %s are not read, %.120q the first: %s", ErrPEFT, len(f.left), AdapterFile, f.left[name].Name, why)
}
