package report

import (
	"bytes"
	"fmt"
)

// traffic is a row of the PFL-DocVQA competition's table A2: all bytes are the
// values of a message by their bits, by twice the clients of all rounds.
type traffic struct {
	name            string
	values, bits    float64
	clients, rounds float64
	published       string
}

func (t traffic) bytes() float64 { return t.values * t.bits / 8 * t.clients * t.rounds * 2 }

// competition is what was sent: 2.75 million values of the base are trained beside the
// adapter, which has 110,000 a rank.
var competition = []traffic{
	{"whole model, 1.116 GB", 279e6, 32, 2, 10, "44.65 GB"},
	{"LoRA r = 6", 6*110e3 + 2.75e6, 32, 2, 7, "380 MB"},
	{"and tuned: 1 client, 2 rounds of 16 epochs", 6*110e3 + 2.75e6, 32, 1, 2, "55 MB"},
	{"and NF4, 4.5 bits a value", 6*110e3 + 2.75e6, 4.5, 1, 2, "7.7 MB"},
}

// arithmetic writes the competition's rows as its own formula gives them.
func arithmetic(b *bytes.Buffer) {
	b.WriteString(`
## The PFL-DocVQA competition, track 1

Published (Tobaben et al., tables 2 and A2): all bytes both ways, without the first copy of the model. The formula is the paper's;
values are VT5's.

| what | values a message | bits | clients a round | rounds | published | computed |
| --- | --- | --- | --- | --- | --- | --- |
`)
	for _, t := range competition {
		size := fmt.Sprintf("%.3g MB", t.bytes()/1e6)
		if t.bytes() >= 1e9 {
			size = fmt.Sprintf("%.3g GB", t.bytes()/1e9)
		}
		fmt.Fprintf(b, "| %s | %.0f | %g | %g | %g | %s | %s |\n", t.name, t.values, t.bits, t.clients, t.rounds, t.published, size)
	}
	b.WriteString(`
ANLS is not reproduced: VT5's weights and the competition's documents are not at hand. Small runs of the last three rows are above. What starling's own schemes send in real rounds is in [BANDWIDTH.md](BANDWIDTH.md), and a
simulation's bytes.csv lists them for each round.
`)
}
