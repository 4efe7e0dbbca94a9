package sweep

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/nearest"
)

//go:embed presets/*.yaml
var presets embed.FS

// Presets names the sweep files that come with the program: the tables and figures of
// publications. Those over labelled data are given it (Plan.Over).
func Presets() []string {
	var names []string
	files, err := presets.ReadDir("presets")
	if err != nil {
		panic(err) // embedded
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Preset is a preset, as text and as a plan.
func Preset(name string) ([]byte, *Plan, error) {
	text, err := presets.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		near := nearest.Question(name, "", Presets())
		if i := slices.IndexFunc(Presets(), func(p string) bool { return strings.HasPrefix(p, name) }); near == "" && name != "" && i >= 0 {
			near = "; did you mean " + Presets()[i] + "?"
		}
		return nil, nil, badSetting("there is no preset %.40q%s: starling sweep --presets lists them", name, near)
	}
	p, err := Parse(bytes.NewReader(text), "")
	if err != nil {
		return nil, nil, fmt.Errorf("preset %s: %w", name, err)
	}
	return text, p, nil
}

// Over sets the labelled file of every point of the plan, and its test file and partition where these are not
// empty.
func (p *Plan) Over(data, test, partition string) error {
	for i := range p.Points {
		s := &p.Points[i].Settings
		if s.Data = data; test != "" {
			s.Test = test
		}
		if partition != "" {
			s.Partition = partition
		}
	}
	return p.check()
}
