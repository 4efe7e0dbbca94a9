package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/lab/sweep"
)

// paper is how a publication set what a preset sets, in its words.
type paper struct {
	Base     string `yaml:"base"`
	Clients  string `yaml:"clients"`
	Trained  string `yaml:"trained"`
	Rounds   string `yaml:"rounds"`
	Epsilon  string `yaml:"epsilon"`
	Division string `yaml:"division"`
	Local    string `yaml:"local"`
	Clip     string `yaml:"clip"`
	Seeds    string `yaml:"seeds"`
}

// beside writes each setting of the publication beside the preset's, and what all of the
// preset's runs cost.
func (c claim) beside(b *bytes.Buffer, plan *sweep.Plan) error {
	of := func(keys ...string) (string, error) { return common(plan, keys) }
	var failed error
	ours := func(otherwise string, keys ...string) string {
		v, err := of(keys...)
		if err != nil && failed == nil {
			failed = err
		}
		if v == "" {
			return otherwise
		}
		return v
	}
	seeds := map[uint64]bool{}
	for _, p := range plan.Points {
		seeds[p.Settings.Seed] = true
	}
	took := "not measured"
	if c.Cost > 0 {
		took = cost(c.Cost, len(plan.Points))
	}
	division := "Dirichlet " + ours("", "alpha")
	if shuffled := ours("", "iid"); shuffled != "" {
		division = "by user; shuffled"
	}
	division = cmp.Or(c.Division, division+", "+ours("", "examples")+" a client")
	epsilon := ours("", "privacy.epsilon")
	if none := ours("", "privacy.none"); none != "" {
		epsilon = strings.TrimPrefix(epsilon+"; none", "; ")
	}
	clip := ours("the base's default", "privacy.clip_norm")
	if free := ours("", "unclipped"); free != "" {
		clip += "; none where there is no noise"
	}
	var p paper
	if c.Paper != nil {
		p = *c.Paper
	}
	rows := [][3]string{
		{"base", p.Base, c.Base},
		{"clients", p.Clients, ours("", "population")},
		{"trained in a round", p.Trained, ours("", "cohort")},
		{"rounds", p.Rounds, ours("20", "rounds")},
		{"epsilon", p.Epsilon, epsilon},
		{"the clients' data", p.Division, division},
		{"local steps", p.Local, ours("adamw", "training.optimizer") + ", " + ours("4", "training.steps") + " of " + ours("8", "training.batch")},
		{"clip norm", p.Clip, clip},
		{"seeds", p.Seeds, fmt.Sprint(len(seeds))},
		{"time", "", took},
	}
	head := "| setting | published | here |\n| --- | --- | --- |\n"
	if c.Paper == nil {
		head = "| setting | here |\n| --- | --- |\n"
	}
	b.WriteString(head)
	for _, r := range rows {
		cells := r[:]
		if c.Paper == nil {
			cells = []string{r[0], r[2]}
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n")
	return failed
}

// cost says what runs of so many seconds of a core take.
func cost(seconds float64, runs int) string {
	all := time.Duration(seconds*float64(runs)) * time.Second
	return fmt.Sprintf("%d runs of some %s of a core: %s on two", runs, spoken(time.Duration(seconds)*time.Second), spoken(all/2))
}

// common are the values that points of a plan have for a key, in their order.
func common(plan *sweep.Plan, keys []string) (string, error) {
	var seen []string
	for _, p := range plan.Points {
		flat, err := p.Settings.Flat()
		if err != nil {
			return "", err
		}
		for _, k := range keys {
			if v := flat[k]; v != "" && v != "false" && !slices.Contains(seen, v) {
				seen = append(seen, v)
			}
		}
	}
	return strings.Join(seen, ", "), nil
}

// spoken is a duration as one says it.
func spoken(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f hours", d.Hours())
}
