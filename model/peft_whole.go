package model

import (
	"fmt"
	"slices"
	"strings"
)

// wholeModules lists the modules of the base that PEFT saves with an adapter
// (modules_to_save), since some of their tensors are trained whole; an error where PEFT
// has no place for one.
func (l *Layout) wholeModules() ([]string, error) {
	var all []string
	for _, e := range l.entries {
		if e.Kind != KindDelta {
			continue
		}
		name := e.Changes()
		module, last := moduleOf(name), name[strings.LastIndexByte(name, '.')+1:]
		why := ""
		switch {
		case last != "weight" && last != "bias":
			why = "is a parameter of its own and of no module"
		case name == T5Shared || l.Config.tiesHead(name) || name == wordsName && l.Method.Task.of().tied:
			why = "is tied to another module, and PEFT cannot load one that is"
		case slices.ContainsFunc(l.Method.adapted(l.Config), func(m linear) bool { return m.name == module }):
			why = "is of a module that has a low-rank update too"
		}
		if why != "" {
			return nil, fmt.Errorf("%w: %s is trained whole, but %s: export it merged", ErrPEFT, name, why)
		}
		if !slices.Contains(all, module) {
			all = append(all, module)
		}
	}
	return all, nil
}

// tiesHead reports whether a tensor is the words' embeddings of a base whose output is tied to them.
func (c Config) tiesHead(name string) bool {
	t := c.arch().tied
	return t != nil && !*t.own(&c) && (name == t.words || name == t.head)
}

// inMemory is what PEFT calls a tensor or a module of the base in a model with a head.
func (l *Layout) inMemory(name string) string {
	c := l.Config
	if c.Causal() && (name == DecoderHead || name+".weight" == DecoderHead) { // beside the decoder, not in it
		return name
	}
	if !c.standard() && (isHead(c, name) || isHead(c, name+".weight")) {
		return c.Module(name)
	}
	return c.checkpointPrefix() + c.Module(name)
}

// addWhole adds the tensors of the modules that are saved whole.
func (a *Adapter) addWhole(st *SafeTensors, base *Base, modules []string) error {
	deltas := map[string][]float32{}
	for i, e := range a.layout.entries {
		if e.Kind == KindDelta {
			deltas[e.Changes()] = a.tensors[i]
		}
	}
	for _, spec := range a.layout.Config.BaseTensors() {
		if !slices.Contains(modules, moduleOf(spec.Name)) {
			continue
		}
		frozen, err := base.Tensor(spec.Name)
		if err != nil {
			return err
		}
		v := slices.Clone(frozen)
		for i, x := range deltas[spec.Name] {
			v[i] += x
		}
		if err := st.Add(peftPrefix+a.layout.inMemory(spec.Name), "F32", spec.Shape, v); err != nil {
			return err
		}
	}
	return nil
}
