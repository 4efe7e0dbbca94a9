package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// The rows that no coordinator takes today over the base that their preset states, whose updates
// have more values than a round carries: the whole of a VT5-base, of it without its words, and of a
// T5-base with boxes and patches.
var refusedToday = map[string][]string{
	"paper000-track1":    {"map[row:0 baseline] 225659136", "map[row:4 FedShampoo] 200984832"},
	"paper000-track2":    {"map[method:baseline] 225659136", "map[method:baseline in 14 rounds] 225659136", "map[method:DP-CLGECL] 225659136"},
	"paper001-table6":    {"map[] 225659136"},
	"paper002-table3-k3": {"map[] 223497984"}, "paper002-table3-k10": {"map[] 223497984"}, "paper002-table3-k30": {"map[] 223497984"},
	"paper002-table4": {"map[] 223497984"}, "paper002-table5": {"map[] 223497984"}, "paper002-table6-k3": {"map[] 223497984"},
	"paper002-table6-k10": {"map[] 223497984"}, "paper002-table7-k30": {"map[] 223497984"},
}

// Every point of every preset is a job that a coordinator takes over the base that the preset
// states, the run before it too, but those that the preset's data call refused: these are, for
// that reason and with as many values.
func TestPresetsFitTheirBases(t *testing.T) {
	for _, name := range Presets() {
		s, err := StatedOf(name)
		ok(t, err)
		_, p, err := Preset(name)
		ok(t, err)
		var listed []string
		hit := make([]int, len(s.Refused))
		for _, r := range s.Refused {
			listed = append(listed, fmt.Sprint(r.On, " ", r.Values))
		}
		if !reflect.DeepEqual(listed, refusedToday[name]) {
			t.Errorf("%s: refused are %q, want %q", name, listed, refusedToday[name])
		}
		c := statedBase(t, s.Base)
		for _, at := range p.Points {
			if at.Settings.Seed != p.Points[0].Settings.Seed { // which changes no size
				continue
			}
			sized := []Settings{at.Settings}
			if len(at.Settings.First) > 0 {
				before, err := at.Settings.Before()
				ok(t, err)
				sized = append(sized, before)
			}
			for _, of := range sized {
				j, err := of.JobOf("x", someLabels(of))
				ok(t, err)
				err = core.CheckSize(j, c)
				i := slices.IndexFunc(s.Refused, func(r Refusal) bool { return has(r, at.On) })
				if i < 0 {
					if err != nil {
						t.Errorf("%s, %v over %s: %v", name, at.On, s.Base, err)
					}
					continue
				}
				if want := fmt.Sprintf("trains %d values; an update has at most 67076096", s.Refused[i].Values); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %v over %s: %v, want %q", name, at.On, s.Base, err, want)
				}
			}
			for i := range s.Refused {
				if has(s.Refused[i], at.On) {
					hit[i]++
				}
			}
		}
		for i, n := range hit {
			if n == 0 {
				t.Errorf("%s: refused %v is not a point", name, s.Refused[i].On)
			}
		}
	}
	var all []Stated
	ok(t, strict.Decode(stated, &all))
	for _, s := range all {
		if !slices.Contains(Presets(), s.Preset) {
			t.Errorf("stated is %s, which is no preset", s.Preset)
		}
	}
}

// has reports whether a refusal is of a point.
func has(r Refusal, on map[string]string) bool {
	for axis, value := range r.On {
		if on[axis] != value {
			return false
		}
	}
	return true
}

// statedBase is the shape of a base that presets state.
func statedBase(t *testing.T, name string) model.Config {
	t.Helper()
	var b *model.Base
	var err error
	switch name {
	case "":
		b, err = base.Default()
	case "documents":
		b, err = base.Documents()
	case "small-hubert": // lab/bench/fsdd/base.sh
		return model.NewHubert(64, 64, 4)
	default:
		text, err := os.ReadFile(filepath.Join("testdata", "bases", name+".json"))
		ok(t, err)
		c, err := model.ParseConfig(text)
		ok(t, err)
		if c.Hears() { // for what is transcribed
			_, err = c.WithCharacters([]string{"'abcdefghijklmnopqrstuvwxyz"})
			ok(t, err)
		}
		return c
	}
	ok(t, err)
	return b.Config
}
