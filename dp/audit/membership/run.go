package membership

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Config says how an audit is made.
type Config struct {
	Seeds     int     // divisions of the providers in known and attacked; below MinSeeds nothing is claimed
	Known     float64 // share of the providers whose membership the attacker is told; 0 means DefaultKnown
	Questions []int   // the attacked have more than so many questions each; nil means DefaultQuestions
	Seed      uint64  // of the first division
}

// Defaults, the paper's.
const (
	DefaultKnown = 0.15
	MinSeeds     = 5
)

// DefaultQuestions are the paper's s.
var DefaultQuestions = []int{0, 5, 10}

// Result is the outcome of all attacks.
type Result struct {
	Seeds         int     `json:"seeds"`
	Known         float64 `json:"known"`
	Sets          []Set   `json:"sets"`
	Claims        bool    `json:"claims"` // there were seeds enough to claim anything
	Distinguished bool    `json:"told"`   // some attack tells members from others
	Suspect       bool    `json:"suspect"`
	Strongest     string  `json:"strongest,omitempty"` // the attack with the largest area
}

// Attacked reports whether any set had enough providers to attack.
func (r Result) Attacked() bool {
	return slices.ContainsFunc(r.Sets, func(s Set) bool { return s.Skipped == "" })
}

// Set is the attacks on the providers with more than so many questions.
type Set struct {
	MoreThan int    `json:"more_than"` // questions
	Members  int    `json:"members"`
	Others   int    `json:"others"`
	Skipped  string `json:"skipped,omitempty"` // why there are no attacks
	Rows     []Row  `json:"attacks,omitempty"`
}

// Row is the outcome of one attack: means over the seeds, the accuracy's deviation over them, and
// intervals over providers.
type Row struct {
	Attack    string    `json:"attack"`
	Control   bool      `json:"control,omitempty"`
	Knowledge string    `json:"knowledge"`
	Metrics   []string  `json:"metrics,omitempty"`
	Source    string    `json:"source,omitempty"`
	Known     int       `json:"known"`    // providers whose membership it was told
	Attacked  int       `json:"attacked"` // the others
	Figures   Figures   `json:"figures"`
	Deviation float64   `json:"accuracy_deviation"`
	Intervals Intervals `json:"intervals"`
	// Chance is the probability that scores without knowledge do as well: twice the mean over the
	// seeds, corrected for all rows together (Holm). Below 5 % the attack works.
	Chance float64 `json:"p"`
}

const significant = 0.05

// leastKnown is how many of each kind a forest is grown on at least.
const leastKnown = 2

// Run attacks.
func Run(units []Unit, cfg Config) (r Result, err error) {
	if cfg.Known == 0 {
		cfg.Known = DefaultKnown
	}
	if cfg.Questions == nil {
		cfg.Questions = DefaultQuestions
	}
	if cfg.Seeds < 1 || cfg.Seeds > 1000 || !(cfg.Known > 0 && cfg.Known < 0.9) {
		return r, fmt.Errorf("%w: %d seeds and a share of %v known, want 1 to 1000 and within (0, 0.9)", ErrUnits, cfg.Seeds, cfg.Known)
	}
	if err := check(units); err != nil {
		return r, err
	}
	r = Result{Seeds: cfg.Seeds, Known: cfg.Known, Claims: cfg.Seeds >= MinSeeds}
	for _, s := range cfg.Questions {
		of := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return u.Questions <= s })
		set := Set{MoreThan: s}
		set.Members, set.Others = count(of)
		if known := knownOf(of, cfg.Known); check(of) != nil || known < leastKnown {
			set.Skipped = fmt.Sprintf("too few providers have so many questions: nothing was attacked, want at least %d members and %d others", leastUnits, leastUnits)
			if check(of) == nil {
				set.Skipped = fmt.Sprintf("too few providers have so many questions: nothing was attacked, a share of %v known is fewer than %d of each kind", cfg.Known, leastKnown)
			}
		} else if set.Rows, err = cfg.attack(of, known); err != nil {
			return r, err
		}
		r.Sets = append(r.Sets, set)
	}
	r.judge()
	return r, nil
}

// knownOf is how many of each kind are known: half of the share each, as the paper has it.
func knownOf(units []Unit, share float64) int {
	in, out := count(units)
	return min(int(math.Round(share*float64(len(units))/2)), in-1, out-1)
}

func (cfg Config) attack(units []Unit, known int) (out []Row, err error) {
	for n, a := range attacks(units) {
		row := Row{Attack: a.Name, Control: a.control, Knowledge: a.Knowledge, Source: a.Source, Known: 2 * known, Attacked: len(units) - 2*known}
		for _, m := range a.metrics {
			row.Metrics = append(row.Metrics, m.String())
		}
		var of []scored
		var accuracies []float64
		for k := range cfg.Seeds {
			rng := rand.New(rand.NewPCG(cfg.Seed, uint64(k)))
			mine := units
			if a.permuted {
				mine = permuted(units, rand.New(rand.NewPCG(cfg.Seed, 1<<32+uint64(k))))
			}
			told, rest := divide(mine, known, rng)
			v, err := a.judge(pick(mine, told), pick(mine, rest), uint64(k))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.Name, err)
			}
			s := ranked(rest, membership(pick(mine, rest)), v.score, v.said)
			of = append(of, s)
			row.Chance += 2 * s.chance() / float64(cfg.Seeds)
			accuracies = append(accuracies, s.figures(nil).Accuracy)
		}
		row.Chance = min(row.Chance, 1)
		row.Figures = meanFigures(of, nil)
		row.Deviation = deviation(accuracies)
		row.Intervals = intervals(of, membership(units), cfg.Seed+uint64(n))
		out = append(out, row)
	}
	return out, nil
}

// divide draws so many members and others who are known, and those that are attacked.
func divide(units []Unit, known int, rng *rand.Rand) (told, rest []int) {
	left := [2]int{known, known}
	for _, i := range rng.Perm(len(units)) {
		c := 0
		if units[i].Member {
			c = 1
		}
		if left[c] > 0 {
			left[c]--
			told = append(told, i)
		} else {
			rest = append(rest, i)
		}
	}
	slices.Sort(rest)
	return told, rest
}

func pick(units []Unit, at []int) []Unit {
	out := make([]Unit, len(at))
	for k, i := range at {
		out[k] = units[i]
	}
	return out
}

// permuted are the units with their membership dealt out anew.
func permuted(units []Unit, rng *rand.Rand) []Unit {
	out := slices.Clone(units)
	for to, from := range rng.Perm(len(units)) {
		out[to].Member = units[from].Member
	}
	return out
}

func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// judge corrects the probabilities for the number of rows, attacks and controls apart, and
// says what follows.
func (r *Result) judge() {
	best := -1.0
	for _, control := range []bool{false, true} {
		var of []*Row
		for s := range r.Sets {
			for k := range r.Sets[s].Rows {
				if row := &r.Sets[s].Rows[k]; row.Control == control {
					of = append(of, row)
				}
			}
		}
		slices.SortStableFunc(of, func(a, b *Row) int { return compare(a.Chance, b.Chance) })
		worst := 0.0
		for k, row := range of { // Holm 1979
			worst = max(worst, min(1, row.Chance*float64(len(of)-k)))
			row.Chance = worst
			switch {
			case control:
				r.Suspect = r.Suspect || worst < significant
			case worst < significant && r.Claims:
				r.Distinguished = true
			}
			if !control && row.Figures.AUC > best {
				best, r.Strongest = row.Figures.AUC, row.Attack
			}
		}
	}
}
