package model_test

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/peft"
)

// modulesOf are all modules of a model with its head, as PEFT sees them in memory.
func modulesOf(l *model.Layout) []string {
	var all []string
	add := func(name string) {
		if m := name[:max(0, strings.LastIndexByte(name, '.'))]; m != "" && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	for _, s := range l.Config.BaseTensors() {
		add(l.Config.CheckpointPrefix() + l.Config.Module(s.Name))
	}
	for _, e := range l.Entries() {
		if e.Kind == model.KindHead {
			add(e.Name)
		}
	}
	return all
}

// peftMatches is PEFT's check_target_module_exists, of one target alone or a list.
func peftMatches(t *testing.T, targets any, module string) bool {
	if pattern, ok := targets.(string); ok {
		return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(module)
	}
	for _, x := range targets.([]any) {
		if module == x.(string) || strings.HasSuffix(module, "."+x.(string)) {
			return true
		}
	}
	return false
}

// allTargets are every single target and every pair of an architecture, and names that
// are the end of several.
func allTargets(c model.Config) []string {
	names := c.LinearNames()
	var all []string
	for i, a := range names {
		all = append(all, a)
		for _, b := range names[i+1:] {
			all = append(all, a+","+b)
		}
	}
	if slices.Contains(names, "attention.output.dense") {
		all = append(all, "dense", "query,dense", "query,key,value,attention.output.dense")
	}
	return append(all, strings.Join(names, ","))
}

// Every single target and every pair comes back from an export as it went, and PEFT finds
// by the names in it the maps that were trained and no other: not a pooler's, not a head's.
func TestTargetsComeBack(t *testing.T) {
	for kind, c := range model.TinyConfigs() {
		labels := 3
		if c.Generates() || c.Causal() {
			labels = 0
		}
		base := model.ZeroBase(t, c)
		for _, targets := range allTargets(c) {
			l, err := model.NewLayout(c, model.Method{RMax: 2, Alpha: 3, Targets: targets, Task: c.DefaultTask()}, labels)
			if err != nil {
				t.Fatal(err)
			}
			a := model.NewAdapter(l, 1)
			v := a.Slice(2)
			for i := range v {
				v[i] = float32(math.Sin(float64(i)))
			}
			if err := a.SetSlice(2, v); err != nil {
				t.Fatal(err)
			}
			files, err := model.PEFTFiles(a, base, 2)
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{}
			for name, data := range files {
				fsys[name] = &fstest.MapFile{Data: data}
			}
			back, err := peft.Load(fsys, base, c.DefaultTask(), labels, nil)
			if err != nil {
				t.Errorf("%s: %s: %v", kind, targets, err)
				continue
			}
			sent, backs := a.Tensors(), back.Tensors()
			same := len(back.Layout().Entries()) == len(l.Entries())
			for i := range l.Entries() {
				same = same && back.Layout().Entries()[i].Name == l.Entries()[i].Name && slices.Equal(backs[i].Data, sent[i].Data)
			}
			if !same {
				t.Errorf("%s: %s comes back as %q with other tensors", kind, targets, back.Layout().Method.Targets)
			}
			var config struct {
				Targets any `json:"target_modules"`
			}
			if err := json.Unmarshal(files[model.AdapterConfigFile], &config); err != nil {
				t.Fatal(err)
			}
			trained := map[string]bool{}
			for _, m := range l.Method.Adapted(c) {
				trained[c.CheckpointPrefix()+c.Module(m)] = true
			}
			for _, module := range modulesOf(l) {
				if got := peftMatches(t, config.Targets, module); got != trained[module] {
					t.Errorf("%s: %s: PEFT takes %s: %v, want %v (target_modules %v)", kind, targets, module, got, trained[module], config.Targets)
				}
			}
		}
	}
}
