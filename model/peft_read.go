package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// LoadPEFT reads a PEFT LoRA adapter's folder, from whatever trained it, over a
// base: rank, scale and targets are the file's. It must adapt the same linear maps in
// every layer and nothing else. labels are the classes
// of the task in the order of the head's outputs. A head that the adapter lacks
// (modules_to_save) is taken from head, which LoadHead reads from a base's folder,
// or starts fresh.
func LoadPEFT(fsys fs.FS, c Config, t TaskKind, labels int, head map[string]Tensor) (*Adapter, error) {
	data, err := readFile(fsys, AdapterConfigFile, maxJSON)
	if err != nil {
		return nil, err
	}
	var p peftConfig
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPEFT, AdapterConfigFile, err)
	}
	if err := p.refuse(); err != nil {
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
	lay, err := NewLayout(c, LoRA{RMax: scales.rank, Alpha: scales.alpha(), Targets: adaptedIn(st, c), Task: t}, labels)
	if err != nil {
		return nil, err
	}
	return takePEFT(lay, st, scales, head)
}

// adaptedIn lists the linear maps that a file's tensors adapt, as a Method's targets;
// "" for those that a method has without any.
func adaptedIn(st *SafeTensors, c Config) string {
	has := func(l linear) bool {
		return slices.ContainsFunc(st.Tensors, func(t RawTensor) bool {
			return strings.HasSuffix(t.Name, "."+l.name+loraA) || strings.HasSuffix(t.Name, "."+c.module(l.name)+loraA)
		})
	}
	var names []string
	for _, short := range c.linearNames() {
		if slices.ContainsFunc(c.linears(), func(l linear) bool { return endsAt(l.name, short) && has(l) }) {
			names = append(names, short)
		}
	}
	found := Method{Targets: strings.Join(names, ",")}
	if slices.Equal(found.adapted(c), Method{}.adapted(c)) {
		return ""
	}
	return found.Targets
}

// refuse refuses what is computed otherwise.
func (p peftConfig) refuse() error {
	start, named := p.InitWeights.(string)
	for _, bad := range []struct {
		set  bool
		what string
	}{
		{p.PeftType != "LORA", fmt.Sprintf("peft_type is %.40q, want LORA", p.PeftType)},
		{p.UseDoRA, "use_dora is set"},
		{p.FanInFanOut, "fan_in_fan_out is set"},
		{p.Bias != "" && p.Bias != "none", fmt.Sprintf("bias is %.40q, want none", p.Bias)},
		{p.LoRABias, "lora_bias is set"},
		{len(p.Replication) > 0, "layer_replication makes another model of the base"},
		{len(p.Invocation) > 0, "alora_invocation_tokens adapt a part of each text alone"},
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

// takePEFT fills a layout from PEFT's tensors, and refuses those that it has no
// place for.
func takePEFT(l *Layout, st *SafeTensors, scales *peftScales, head map[string]Tensor) (*Adapter, error) {
	a := NewAdapter(l, 0)
	if err := a.setHead(head); err != nil {
		return nil, err
	}
	left := map[string]RawTensor{}
	for _, t := range st.Tensors {
		name := strings.TrimPrefix(t.Name, peftPrefix)
		for _, p := range []string{l.Config.arch().prefix, ownPrefix} {
			name = strings.TrimPrefix(name, p)
		}
		left[strings.Replace(name, ".modules_to_save.default.", ".", 1)] = t
	}
	for i, e := range l.entries {
		name := e.Name
		if _, ok := left[name]; !ok {
			name = l.Config.module(name)
		}
		raw, ok := left[name]
		delete(left, name)
		if !ok && e.Kind == KindHead {
			continue // the base's, or a fresh one
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s has no tensor for %s", ErrPEFT, AdapterFile, e.Name)
		}
		low := e.Kind == KindA || e.Kind == KindB
		if !low && !slices.Equal(raw.Shape, e.Shape) {
			return nil, fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrPEFT, raw.Name, raw.Shape, e.Shape)
		}
		v, err := raw.Float32()
		if err == nil && low {
			v, err = scales.fit(l, e, raw, v)
		}
		if err != nil {
			return nil, err
		}
		for _, x := range v {
			if x-x != 0 {
				return nil, fmt.Errorf("%w: tensor %q has a value %v", ErrPEFT, raw.Name, x)
			}
		}
		a.tensors[i] = v
	}
	if len(left) > 0 {
		names := slices.Sorted(maps.Keys(left))
		return nil, fmt.Errorf("%w: %d tensors change what Starling keeps frozen, %.120q the first: only linear maps of every layer and the head are trained",
			ErrPEFT, len(names), left[names[0]].Name)
	}
	return a, nil
}

// Rescaled is the same adapter under a rule for its scale: at r_max it computes what it
// did, below that what the rule says.
func Rescaled(a *Adapter, rule Scaling) (*Adapter, error) {
	m := a.layout.LoRA
	m.Scaling = rule
	l, err := NewLayout(a.layout.Config, m, a.layout.Classes)
	if err != nil {
		return nil, err
	}
	return &Adapter{layout: l, tensors: a.Clone().tensors}, nil
}

// LoadHead reads the tensors of a task's head from a base's folder, by
// the layout's names; empty where the folder has none.
func LoadHead(fsys fs.FS, c Config, t TaskKind) (map[string]Tensor, error) {
	files, err := readWeights(fsys)
	if err != nil {
		return nil, err
	}
	head := map[string]Tensor{}
	names := c.headNames(t)
	for _, name := range names {
		for _, st := range files {
			if !hasTensor(st, name) {
				continue
			}
			t, err := st.Tensor(name)
			if err != nil {
				return nil, err
			}
			head[name] = t
		}
	}
	if len(head) > 0 && (t == TaskClassify || t == TaskImage) {
		if err := oneLabel(fsys); err != nil {
			return nil, err
		}
	}
	for _, name := range names { // a module's half would be filled up with zeros
		if _, there := head[name]; !there {
			continue
		}
		for _, halves := range [][2]string{{".weight", ".bias"}, {".bias", ".weight"}} {
			if module, ok := strings.CutSuffix(name, halves[0]); ok {
				other := module + halves[1]
				if _, there := head[other]; !there && slices.Contains(names, other) {
					return nil, fmt.Errorf("its own head has a tensor %q and no %q", name, other)
				}
			}
		}
	}
	return head, nil
}

// oneLabel refuses a classifier whose outputs are no label's scores.
func oneLabel(fsys fs.FS) error {
	var o struct {
		Problem *string `json:"problem_type"`
	}
	if err := optionalJSON(fsys, ConfigFile, &o); err != nil {
		return err
	}
	if want := "single_label_classification"; o.Problem != nil && *o.Problem != want {
		return fmt.Errorf("%w: config.json: problem_type of its head is %.40q, only %s is computed here", ErrConfig, *o.Problem, want)
	}
	return nil
}

// headNames are the tensors of a task's head that a job trains.
func (c Config) headNames(t TaskKind) (names []string) {
	if t == TaskPretrain && c.arch().masked != nil {
		for _, e := range c.maskedEntries() {
			names = append(names, e.Name)
		}
	}
	for _, d := range c.HeadFor(t) {
		if d.Trained {
			names = append(names, d.Name+".weight", d.Name+".bias")
		}
	}
	return names
}

// HeadAdapter is an adapter of rank 1 that changes nothing but the head, which is
// the given one where it has tensors.
func HeadAdapter(c Config, t TaskKind, labels int, head map[string]Tensor) (*Adapter, error) {
	lay, err := NewLayout(c, LoRA{RMax: 1, Alpha: 1, Task: t}, labels)
	if err != nil {
		return nil, err
	}
	a := NewAdapter(lay, 0)
	return a, a.setHead(head)
}

// setHead takes over the tensors of a head that the layout has.
func (a *Adapter) setHead(head map[string]Tensor) error {
	for i, e := range a.layout.entries {
		t, ok := head[e.Name]
		if !ok || e.Kind != KindHead {
			continue
		}
		if !slices.Equal(t.Shape, e.Shape) {
			return fmt.Errorf("%w: the base's own %s has shape %v, want %v for the labels given", ErrConfig, e.Name, t.Shape, e.Shape)
		}
		a.tensors[i] = t.Data
	}
	return nil
}

// StartFrom returns an adapter of layout l that computes at r_max what from computes at
// its own r_max, with the seed's values where it has more ranks: what a job begins with
// in place of NewAdapter's. from must train the same tensors at no more ranks.
func StartFrom(l *Layout, from *Adapter, seed uint64) (*Adapter, error) {
	if len(l.entries) != len(from.layout.entries) || from.layout.LoRA.RMax > l.LoRA.RMax {
		return nil, fmt.Errorf("%w: the start has %d tensors and ranks up to %d, the job trains %d up to %d", ErrPEFT,
			len(from.layout.entries), from.layout.LoRA.RMax, len(l.entries), l.LoRA.RMax)
	}
	a := NewAdapter(l, seed)
	has, rank := from.layout.LoRA.RMax, l.LoRA.RMax
	factor := float32(from.layout.LoRA.Scale(has) / l.LoRA.Scale(rank))
	for i, e := range l.entries {
		theirs := from.layout.entries[i]
		if theirs.Name != e.Name || !slices.Equal(theirs.ShapeAt(1), e.ShapeAt(1)) {
			return nil, fmt.Errorf("%w: the start trains %s%v where the job trains %s%v", ErrPEFT, theirs.Name, theirs.Shape, e.Name, e.Shape)
		}
		if e.Kind != KindB {
			copy(a.tensors[i], from.tensors[i]) // of A the first ranks' rows
			continue
		}
		for row := range e.Shape[0] {
			for k := range has {
				a.tensors[i][row*rank+k] = factor * from.tensors[i][row*has+k]
			}
		}
	}
	return a, nil
}
