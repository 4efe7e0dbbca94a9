package bandwidth

import "github.com/starling-fl/starling/model"

// Published is what others report for a job, and the arithmetic behind it.
type Published struct {
	What      string  `json:"what"`
	Bytes     float64 `json:"bytes"`      // as published
	Computed  float64 `json:"computed"`   // rounds * clients * (up + down) * values * bits / 8
	AtOurSize bool    `json:"at_our_job"` // the rounds and clients that ours are for
}

// Size is one length of update: Params values, of an adapter at Rank (0: a number
// of values without a rank).
type Size struct{ Rank, Params int }

// DocVQAParams is the number of LoRA parameters of the winner of the PFL-DocVQA
// competition's first track.
const DocVQAParams = 3_419_136

// DocVQA is what the competition's winner is known to cost, as reported by Tobaben
// et al. (2024), section 4.3. Its logs count values times size; bytes on a wire
// were not measured.
func DocVQA() []Published {
	total := func(rounds, clients int, bits float64) float64 {
		return float64(rounds*clients*2*DocVQAParams) * bits / 8
	}
	return []Published{
		{"LoRA in float32, 7 rounds of 2 clients", 380e6, total(7, 2, 32), false},
		{"LoRA in float32, 2 rounds of 1 client", 55e6, total(2, 1, 32), true},
		{"LoRA in NF4, 2 rounds of 1 client", 7.7e6, total(2, 1, 4.5), true},
	}
}

// DyLoRASizes are the adapters of BERT-small (4 layers, 512 wide) with a head
// of 8 classes, at several ranks.
func DyLoRASizes(ranks []int) ([]Size, error) {
	if len(ranks) == 0 {
		ranks = []int{1, 4, 16}
	}
	most := 0
	for _, r := range ranks {
		most = max(most, r)
	}
	layout, err := model.NewLayout(model.BERT(30522, 512, 4, 8, 512), model.Method{RMax: most, Alpha: 16}, 8)
	if err != nil {
		return nil, &SettingError{"ranks", err}
	}
	var out []Size
	for _, r := range ranks {
		out = append(out, Size{Rank: r, Params: layout.Size(r)})
	}
	return out, nil
}
