package main

import "github.com/starling-fl/starling/model"

// The presets.
const (
	presetDocVQA = "docvqa-winner"
	presetDyLoRA = "dp-dylora"
)

// published is what others report for a job, and the arithmetic behind it.
type published struct {
	What      string  `json:"what"`
	Bytes     float64 `json:"bytes"`      // as published
	Computed  float64 `json:"computed"`   // rounds * clients * (up + down) * values * bits / 8
	AtOurSize bool    `json:"at_our_job"` // the rounds and clients that ours are for
}

// docVQAParams is the number of LoRA parameters of the winner of the PFL-DocVQA
// competition's first track.
const docVQAParams = 3_419_136

// apply sets what a preset stands for, except where a flag was given.
func (f *bandwidthFlags) apply(given func(string) bool) error {
	set := func(flag string, do func()) {
		if !given(flag) {
			do()
		}
	}
	switch f.preset {
	case "":
	case presetDocVQA:
		// One client in each of two rounds. Aggregation needs company: rows are for
		// a shard of three, the smallest that devices accept, of which each device
		// is counted by itself.
		set("params", func() { f.params = docVQAParams })
		set("cohort", func() { f.cohort = 3 })
		set("shard", func() { f.shard = 3 })
		set("rounds", func() { f.rounds = 2 })
		set("job-rounds", func() { f.jobRounds = 2 })
		set("schemes", func() {
			f.schemes = []string{"masked:nf4", "masked:int4", "masked:int5", "clear:f32", "clear:nf4", "clear:nf4dq"}
		})
		set("downlink", func() { f.downlink = "nf4" })
	case presetDyLoRA:
		set("schemes", func() { f.schemes = []string{"masked:nf4", "masked:int4", "masked:int5", "clear:f32", "clear:nf4dq"} })
		set("codecs", func() { f.codecs = []string{"zstd"} })
	default:
		return usagef("--preset: no preset %q; there are %s, %s", f.preset, presetDocVQA, presetDyLoRA)
	}
	return nil
}

// published returns what a preset's setting is known to cost elsewhere: the
// competition's winner, as reported by Tobaben et al. (2024), section 4.3.
// Its logs count values times size; bytes on a wire were not measured.
func (f *bandwidthFlags) published() []published {
	if f.preset != presetDocVQA {
		return nil
	}
	total := func(rounds, clients int, bits float64) float64 {
		return float64(rounds*clients*2*docVQAParams) * bits / 8
	}
	return []published{
		{"LoRA in float32, 7 rounds of 2 clients", 380e6, total(7, 2, 32), false},
		{"LoRA in float32, 2 rounds of 1 client", 55e6, total(2, 1, 32), true},
		{"LoRA in NF4, 2 rounds of 1 client", 7.7e6, total(2, 1, 4.5), true},
	}
}

// dyLoRASizes are the adapters of BERT-small (4 layers, 512 wide) with a head
// of 8 classes, at several ranks.
func dyLoRASizes(ranks []int) ([]size, error) {
	if len(ranks) == 0 {
		ranks = []int{1, 4, 16}
	}
	most := 0
	for _, r := range ranks {
		most = max(most, r)
	}
	layout, err := model.NewLayout(model.BERT(30522, 512, 4, 8, 512), model.LoRA{RMax: most, Alpha: 16}, 8)
	if err != nil {
		return nil, usageError{err}
	}
	var out []size
	for _, r := range ranks {
		out = append(out, size{rank: r, params: layout.Size(r)})
	}
	return out, nil
}
