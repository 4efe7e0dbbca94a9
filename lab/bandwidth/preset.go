package bandwidth

import (
	_ "embed" // the presets
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/model"
)

//go:embed presets.yaml
var presets []byte

// Preset is a publication's setting.
type Preset struct {
	Name      string            `yaml:"name"`
	Adapters  bool              `yaml:"adapters"` // measures the sizes of AdapterSizes
	Flags     map[string]string `yaml:"flags"`    // of starling bandwidth
	Published []Published       `yaml:"published"`
}

// Published is what others report for a job, and the arithmetic behind it.
type Published struct {
	What      string  `json:"what" yaml:"what"`
	Bytes     float64 `json:"bytes" yaml:"bytes"`           // as published
	Computed  float64 `json:"computed" yaml:"computed"`     // rounds * clients * (up + down) * values * bits / 8
	AtOurSize bool    `json:"at_our_job" yaml:"at_our_job"` // the rounds and clients that ours are for
}

// LookupPreset finds a preset; "" is none.
func LookupPreset(name string) (Preset, error) {
	if name == "" {
		return Preset{}, nil
	}
	var all []Preset
	if err := strict.Decode(presets, &all); err != nil {
		return Preset{}, fmt.Errorf("bandwidth: presets: %w", err)
	}
	if i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return Preset{}, &SettingError{"preset", fmt.Errorf("no preset %q; there are %s", name, strings.Join(names, ", "))}
}

// Size is one length of update: Params values, of an adapter at Rank (0: a number
// of values without a rank).
type Size struct{ Rank, Params int }

// AdapterSizes are the adapters of BERT-small (4 layers, 512 wide) with a head
// of 8 classes, at several ranks; without any at 1, 4 and 16.
func AdapterSizes(ranks []int) (sizes []Size, err error) {
	if len(ranks) == 0 {
		ranks = []int{1, 4, 16}
	}
	layout, err := model.NewLayout(model.BERT(30522, 512, 4, 8, 512), model.Method{RMax: slices.Max(ranks), Alpha: 16}, 8)
	if err != nil {
		return nil, &SettingError{"ranks", err}
	}
	for _, r := range ranks {
		sizes = append(sizes, Size{Rank: r, Params: layout.Size(r)})
	}
	return sizes, nil
}
