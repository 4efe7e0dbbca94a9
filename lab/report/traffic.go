package report

import (
	"bytes"
	"fmt"
)

// traffic is a publication's account of the bytes that methods send, by its own formula.
type traffic struct {
	Title  string       `yaml:"title"`
	Source string       `yaml:"source"`
	Rows   []trafficRow `yaml:"rows"`
	Note   string       `yaml:"note"`
}

// trafficRow is a method: all bytes are the values of a message by their bits, by twice the
// clients of all rounds.
type trafficRow struct {
	What      string  `yaml:"what"`
	Values    float64 `yaml:"values"`
	Bits      float64 `yaml:"bits"`
	Clients   float64 `yaml:"clients"`
	Rounds    float64 `yaml:"rounds"`
	Published string  `yaml:"published"`
}

func (t trafficRow) bytes() float64 { return t.Values * t.Bits / 8 * t.Clients * t.Rounds * 2 }

// write puts what was published beside what the formula gives.
func (t *traffic) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", t.Title, t.Source)
	b.WriteString("| what | values a message | bits | clients a round | rounds | published | computed |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range t.Rows {
		size := fmt.Sprintf("%.3g MB", r.bytes()/1e6)
		if r.bytes() >= 1e9 {
			size = fmt.Sprintf("%.3g GB", r.bytes()/1e9)
		}
		fmt.Fprintf(b, "| %s | %.0f | %g | %g | %g | %s | %s |\n", r.What, r.Values, r.Bits, r.Clients, r.Rounds, r.Published, size)
	}
	fmt.Fprintf(b, "\n%s", t.Note)
}
