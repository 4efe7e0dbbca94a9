package sweep

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/dp/accounting"
)

// TrialAxis tells the runs of an accounted search apart that were drawn the same settings:
// each has secrets of its own.
const TrialAxis = "trial"

// AccountSearch makes the search one whose privacy is counted (accounting.Search): in place of
// every combination of the search axes' values, each seed has a random number of runs, by
// that distribution, each with a combination picked by chance. All places of a seed have
// the same number, so that each method is searched as much as another; and what is drawn
// follows from the seed alone.
func (p *Plan) AccountSearch(by string) error {
	search, err := accounting.ParseSearch(by)
	if err != nil {
		return badSetting("account_search is %w", err)
	}
	x := Index{Axes: p.Axes}
	if len(x.Searched()) == 0 {
		return badSetting("account_search is %s, and no axis is listed under search: list those that validation chooses from", search)
	}
	if p.Search != "" {
		return badSetting("account_search is %s already", p.Search)
	}
	var places []string
	trials := map[string][]Point{}
	for _, at := range p.Points {
		place := x.Key(at.On)
		if trials[place] == nil {
			places = append(places, place)
		}
		trials[place] = append(trials[place], at)
	}
	var points []Point
	most := 0
	for _, place := range places {
		if err := alikeInNoise(trials[place]); err != nil {
			return err
		}
		drawn, err := draw(search, trials[place], maxPoints-len(points))
		if err != nil {
			return err
		}
		for _, at := range drawn {
			most = max(most, at.Settings.Trial+1)
		}
		points = append(points, drawn...)
	}
	if len(points) == 0 {
		return badSetting("account_search is %s, which draws no run for any of the seeds: give more seeds, or another distribution", search)
	}
	axis := Axis{Name: TrialAxis, Search: true}
	for i := range most {
		axis.Values = append(axis.Values, strconv.Itoa(i+1))
	}
	p.Axes, p.Points, p.Search = append(p.Axes, axis), points, search.String()
	return p.check()
}

// alikeInNoise refuses trials of which one may spend more than another: what a search costs
// is about a run whose settings were picked before its privacy was.
func alikeInNoise(trials []Point) error {
	first, err := trials[0].Settings.Flat()
	if err != nil {
		return err
	}
	for _, at := range trials[1:] {
		flat, err := at.Settings.Flat()
		if err != nil {
			return err
		}
		for key := range flat {
			if flat[key] != first[key] && spends(key) {
				return badSetting("account_search: trials differ in %s, which decides what a run spends: search over other settings, and vary that one", key)
			}
		}
		for key := range first {
			if _, ok := flat[key]; !ok && spends(key) {
				return badSetting("account_search: some trials name %s, which decides what a run spends, and others do not", key)
			}
		}
	}
	return nil
}

// spends reports whether a setting decides what a run spends.
func spends(key string) bool {
	if key == "privacy.clip_norm" {
		return false // noise is measured by it
	}
	return slices.Contains([]string{"rounds", "population", "sampling_rate", "cohort", "dropout", "slow"}, key) ||
		strings.HasPrefix(key, "privacy.") || strings.HasPrefix(key, "cohort.") || strings.HasPrefix(key, "shard.")
}

// draw picks the runs of one place and seed from its combinations.
func draw(search accounting.Search, of []Point, most int) ([]Point, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "starling search v1\x00%s\x00%d", search, of[0].Settings.Seed))
	random := rand.NewChaCha8(key)
	n, err := search.Draw(random)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, badSetting("account_search is %s, and the grid has more than %d points", search, maxPoints)
	}
	picks := rand.New(random)
	again := map[int]int{}
	var out []Point
	for range n {
		i := picks.IntN(len(of))
		at := Point{On: maps.Clone(of[i].On), Settings: of[i].Settings}
		at.Settings.AccountSearch, at.Settings.Trial = search.String(), again[i]
		again[i]++
		at.On[TrialAxis] = strconv.Itoa(again[i])
		out = append(out, at)
	}
	return out, nil
}

// account is AccountSearch where the sweep file says so, for all points alike.
func (p *Plan) account() error {
	by := p.Points[0].Settings.AccountSearch
	if slices.ContainsFunc(p.Points, func(at Point) bool { return at.Settings.AccountSearch != by }) {
		return badSetting("account_search differs from point to point: a search has one distribution")
	}
	if by == "" {
		return nil
	}
	return p.AccountSearch(by)
}

// Empty are the places of a search of which no run was drawn, as a Poisson number allows:
// nothing is released of them. Each is named by its seed.
func (x *Index) Empty() (seeds []string) {
	if x.AccountSearch == "" {
		return nil
	}
	drawn := map[string]bool{}
	for _, run := range x.Runs {
		drawn[run.On[seedAxis]] = true
	}
	for _, a := range x.Axes {
		if a.Name == seedAxis {
			for _, v := range a.Values {
				if !drawn[v] {
					seeds = append(seeds, v)
				}
			}
		}
	}
	return seeds
}

// Counted says what a search costs beside one of its runs, of those that were chosen.
func (x *Index) Counted(chosen []*Record) string {
	var said []string
	for _, r := range chosen {
		if r.Search == nil {
			continue
		}
		one := fmt.Sprintf("epsilon %.4g of the whole search beside %.4g of one run, at delta %.3g", r.Search.Epsilon, r.Epsilon, r.Delta)
		if !slices.Contains(said, one) {
			said = append(said, one)
		}
	}
	if len(said) == 0 {
		return "no run has noise: no epsilon holds"
	}
	return strings.Join(said, "; ")
}
