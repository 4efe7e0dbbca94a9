package model

import (
	"slices"
	"strings"
)

// peftTargets lists the linear maps that LoRA changes by names that PEFT finds them by, and
// nothing else: it takes every module of the whole model whose name is a target or ends
// in one at a dot, a pooler's and a head's too.
func (l *Layout) peftTargets() []string {
	c := l.Config
	asked := c.arch().targets
	if l.Method.Targets != "" {
		asked = strings.Split(l.Method.Targets, ",")
	}
	var inLayer, whole []string
	trained := map[string]bool{}
	for _, m := range l.Method.adapted(c) {
		name, short := c.Module(m.name), c.Module(m.inLayer())
		trained[name], whole = true, append(whole, name)
		if !slices.Contains(inLayer, short) {
			inLayer = append(inLayer, short)
		}
	}
	modules := l.modules()
	for _, names := range [][]string{asked, inLayer} {
		finds := func(module string) bool {
			return slices.ContainsFunc(names, func(n string) bool { return endsAt(module, n) })
		}
		found := 0
		exact := !slices.ContainsFunc(modules, func(m string) bool {
			if finds(m) {
				found++
			}
			return finds(m) != trained[m]
		})
		if exact && found == len(whole) { // not under other names in memory
			return names
		}
	}
	return whole
}

// modules lists the modules of the base and the head that hold tensors, by their names in
// memory.
func (l *Layout) modules() []string {
	var all []string
	seen := map[string]bool{}
	add := func(tensor string) {
		m := l.Config.Module(moduleOf(tensor))
		if m != "" && !seen[m] {
			seen[m], all = true, append(all, m)
		}
	}
	for _, t := range l.Config.BaseTensors() {
		add(t.Name)
	}
	for _, e := range l.entries {
		if e.Kind == KindHead {
			add(e.Name)
		}
	}
	return all
}

// moduleOf is the module whose tensor a name is; "" where it stands alone.
func moduleOf(tensor string) string { return tensor[:max(0, strings.LastIndexByte(tensor, '.'))] }
