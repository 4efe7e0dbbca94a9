package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

// Plan is a grid of simulations.
type Plan struct {
	Name string
	Axes []Axis
	// Compare names, by axis, the points that all others are compared with in pairs:
	// equal in every other axis and in the seed.
	Compare map[string]string
	Points  []Point
	// Search is the distribution of the number of runs of a search whose privacy is
	// counted; "" if none is. See AccountSearch.
	Search string
}

// Axis is one setting, or several that change together, and its values.
type Axis struct {
	Name   string
	Values []string
	// Search says that the axis is not compared: of its values each place and seed keeps
	// the one that validation likes best. See Chosen.
	Search bool `json:",omitempty"`
}

// Place names a run by where it stands on axes.
func Place(axes []Axis, on map[string]string) string {
	var parts []string
	for _, a := range axes {
		parts = append(parts, a.Name+" "+on[a.Name])
	}
	return strings.Join(parts, ", ")
}

// Point is one simulation of the grid.
type Point struct {
	On       map[string]string // by axis: the value's name
	Settings Settings
}

// file is a sweep file. Single settings of every point stand beside these keys.
type file struct {
	Name    string            `yaml:"name"`
	Job     string            `yaml:"job"` // a job file, relative to the sweep file
	Seeds   []uint64          `yaml:"seeds"`
	Set     strict.Pairs      `yaml:"set"`    // settings of every point
	Vary    strict.Pairs      `yaml:"vary"`   // axes, in order
	Search  strict.Pairs      `yaml:"search"` // axes of which validation chooses, seed by seed
	Compare map[string]string `yaml:"compare"`
	// Except leaves points out: those that have a group's values on its axes.
	Except []map[string]string `yaml:"except"`
}

const maxPoints = 10_000

// Load reads a sweep file. Paths in it are relative to its folder.
func Load(path string) (*Plan, error) {
	f, err := named.Once(path)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	defer f.Close()
	p, err := Parse(f, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Parse reads a sweep: strict YAML. dir is where relative paths begin.
func Parse(r io.Reader, dir string) (*Plan, error) { return parse(r, dir, maxPoints) }

// parse refuses a grid of more than most points before it makes the first of them.
func parse(r io.Reader, dir string, most int) (*Plan, error) {
	var f file
	if err := strict.Read(r, &f); err != nil {
		return nil, unreadable(err)
	}
	if err := f.bound(most); err != nil {
		return nil, err
	}
	base := DefaultSettings()
	var err error
	if base.Job, err = readJob(f.Job, dir); err != nil {
		return nil, err
	}
	for _, item := range f.Set {
		if base, err = base.With(fmt.Sprint(item.Key), item.Value); err != nil {
			return nil, err
		}
	}
	p := &Plan{Name: f.Name, Compare: f.Compare, Points: []Point{{On: map[string]string{}, Settings: base}}}
	for _, item := range f.Vary {
		if err := p.vary(fmt.Sprint(item.Key), item.Value); err != nil {
			return nil, err
		}
	}
	for _, item := range f.Search {
		if err := p.vary(fmt.Sprint(item.Key), item.Value); err != nil {
			return nil, err
		}
		p.Axes[len(p.Axes)-1].Search = true
	}
	if err := p.except(f.Except); err != nil {
		return nil, err
	}
	seeds := Axis{Name: seedAxis}
	for _, s := range f.Seeds {
		seeds.Values = append(seeds.Values, fmt.Sprint(s))
	}
	err = p.cross(seeds, func(at Settings, i int) Settings {
		at.Seed = f.Seeds[i]
		return at
	})
	if err != nil {
		return nil, err
	}
	named := f.named()
	given := func(setting string) bool { return named[setting] }
	for i := range p.Points {
		s := &p.Points[i].Settings
		for _, path := range []*string{&s.Data, &s.Test, &s.Partition} {
			if *path != "" && !filepath.IsAbs(*path) {
				*path = filepath.Join(dir, *path)
			}
		}
		*s = s.beside(dir)
		if *s, err = s.Fill(given); err != nil {
			return nil, err
		}
	}
	if err := p.account(); err != nil {
		return nil, err
	}
	return p, p.check()
}

// named are the settings that the file names for any of its points.
func (f *file) named() map[string]bool {
	out := map[string]bool{}
	for _, item := range slices.Concat(f.Set, f.Vary, f.Search) {
		out[fmt.Sprint(item.Key)] = true
		groups, _ := item.Value.(map[string]any)
		for _, g := range groups {
			keys, _ := g.(map[string]any)
			for k := range keys {
				out[k] = true
			}
		}
	}
	return out
}

// bound refuses a grid of more than most points, and gives it a seed where it names none.
func (f *file) bound(most int) error {
	if len(f.Seeds) == 0 {
		f.Seeds = []uint64{1}
	}
	points := len(f.Seeds)
	for _, item := range slices.Concat(f.Vary, f.Search) {
		switch v := item.Value.(type) { // an axis that is neither is refused in its turn
		case []any:
			points *= max(1, len(v))
		case map[string]any:
			points *= max(1, len(v))
		}
		if points > most {
			break
		}
	}
	if points > most {
		return badSetting("the grid has more than %d points", most)
	}
	return nil
}

// beside looks for the adapter that the job starts from in the file's own folder first.
func (s Settings) beside(dir string) Settings {
	at, ok := lookup(s.Job, "adapter.start")
	start, isText := at.(string)
	if !ok || !isText || start == "" || filepath.IsAbs(start) {
		return s
	}
	if info, err := os.Stat(filepath.Join(dir, start)); err == nil && info.IsDir() {
		s.Job = clone(s.Job)
		set(s.Job, "adapter.start", filepath.Join(dir, start))
	}
	return s
}

// WithJob returns the settings with the keys of a job file.
func (s Settings) WithJob(path string) (Settings, error) {
	var err error
	if s.Job, err = readJob(path, ""); err != nil {
		return s, err
	}
	return s.beside(filepath.Dir(path)), nil
}

func readJob(path, dir string) (map[string]any, error) {
	keys := map[string]any{}
	if path == "" {
		return keys, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := named.Once(path)
	if err != nil {
		return nil, fmt.Errorf("sweep: job: %w", err)
	}
	defer f.Close()
	if err := strict.Read(f, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", path, unreadable(err))
	}
	delete(keys, "validation_file") // a server's: a simulation holds out a part of its data
	return keys, nil
}

// unreadable says what is wrong with a file that its caller names.
func unreadable(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return badSetting("%w", file.Err)
	}
	return badSetting("%s", strict.Explain(err, true))
}

// vary adds an axis: a list of values of one key, or named groups of keys.
func (p *Plan) vary(name string, value any) error {
	switch v := value.(type) {
	case []any:
		if len(v) == 0 {
			return badSetting("vary.%s has no values", name)
		}
		a := Axis{Name: name}
		changes := make([][]change, len(v))
		for i, x := range v {
			a.Values = append(a.Values, text(x))
			c, err := newChange(name, x)
			if err != nil {
				return err
			}
			changes[i] = []change{c}
		}
		return p.cross(a, applied(changes))
	case map[string]any:
		a := Axis{Name: name}
		if len(v) == 0 {
			return badSetting("vary.%s has no values", name)
		}
		a.Values = slices.Sorted(maps.Keys(v))
		changes := make([][]change, len(v))
		for i, value := range a.Values {
			group, ok := v[value].(map[string]any)
			if !ok {
				return badSetting("vary.%s.%s is not a group of keys", name, value)
			}
			for _, k := range slices.Sorted(maps.Keys(group)) {
				c, err := newChange(k, group[k])
				if err != nil {
					return err
				}
				changes[i] = append(changes[i], c)
			}
		}
		return p.cross(a, applied(changes))
	}
	return badSetting("vary.%s is neither a list of values nor named groups of keys", name)
}

// applied has each value of an axis stand for changes of the settings.
func applied(changes [][]change) func(at Settings, i int) Settings {
	return func(at Settings, i int) Settings {
		for _, c := range changes[i] {
			at = c(at)
		}
		return at
	}
}

// cross multiplies the points by an axis.
func (p *Plan) cross(a Axis, apply func(at Settings, i int) Settings) error {
	if slices.ContainsFunc(p.Axes, func(x Axis) bool { return x.Name == a.Name }) {
		return badSetting("vary.%s stands twice", a.Name)
	}
	points := make([]Point, 0, len(p.Points)*len(a.Values))
	for _, at := range p.Points {
		for i, value := range a.Values {
			next := Point{On: maps.Clone(at.On), Settings: apply(at.Settings, i)}
			next.On[a.Name] = value
			points = append(points, next)
		}
	}
	p.Points = points
	p.Axes = append(p.Axes, a)
	return nil
}

// except leaves points out.
func (p *Plan) except(groups []map[string]string) error {
	for i, group := range groups {
		before := len(p.Points)
		p.Points = slices.DeleteFunc(p.Points, func(at Point) bool {
			for axis, value := range group {
				if at.On[axis] != value {
					return false
				}
			}
			return len(group) > 0
		})
		if len(p.Points) == before {
			return badSetting("except[%d], %v, is not a point of vary", i, group)
		}
	}
	if len(p.Points) == 0 {
		return badSetting("except leaves no point")
	}
	return nil
}

// seedAxis is the axis that repeats every other point.
const seedAxis = "seed"

// BySeed lists the points seed by seed: a grid that is not done yet then holds whole
// seeds, which pairs need, and not some methods with all of theirs.
func (p *Plan) BySeed() []Point {
	i := slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Name == seedAxis })
	out := slices.Clone(p.Points)
	slices.SortStableFunc(out, func(a, b Point) int {
		return cmp.Compare(slices.Index(p.Axes[i].Values, a.On[seedAxis]), slices.Index(p.Axes[i].Values, b.On[seedAxis]))
	})
	return out
}

// check refuses a plan of which two points are the same, or that compares with a
// point it does not have.
func (p *Plan) check() error {
	for axis, value := range p.Compare {
		i := slices.IndexFunc(p.Axes, func(a Axis) bool { return a.Name == axis })
		if i < 0 || p.Axes[i].Search {
			return badSetting("compare.%s is not an axis of vary", axis)
		}
		if !slices.Contains(p.Axes[i].Values, value) {
			return badSetting("compare.%s is %q, want one of %s", axis, value, strings.Join(p.Axes[i].Values, ", "))
		}
	}
	seen := map[string]bool{}
	for _, at := range p.Points {
		if err := at.Settings.Check(); err != nil {
			return err
		}
		id, err := at.Settings.ID()
		if err != nil {
			return err
		}
		if seen[id] {
			return badSetting("two points of the grid are the same simulation: %v", at.On)
		}
		seen[id] = true
	}
	return nil
}
