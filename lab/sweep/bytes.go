package sweep

import (
	"bytes"
	"encoding/csv"
	"strconv"

	"github.com/starling-fl/starling/simulate"
)

// bytesFile lists what a run's messages carry.
const bytesFile = "bytes.csv"

// bytesTable has two rows a round: what every client of the cohort is sent and what
// it sends. A client without an example sends as much as any other. values_bytes is
// the arithmetic of publications, the trained values as float32; wire_bytes is what
// the message holds: the packed slice (nothing in the first round of a fresh
// adapter, which its seed gives), and the masked vector. Both are of one message.
func bytesTable(rounds []simulate.Round) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	write := func(cells ...string) error { return w.Write(cells) }
	if err := write("round", "from", "to", "kind", "messages", "values_bytes", "wire_bytes"); err != nil {
		return nil, err
	}
	for _, r := range rounds {
		round, cohort, values := strconv.Itoa(r.Number), strconv.Itoa(r.Cohort), strconv.Itoa(4*r.Values)
		if err := write(round, "server", "client", "slice", cohort, values, strconv.Itoa(r.BytesDown)); err != nil {
			return nil, err
		}
		up := cohort
		if r.NoiseOnly {
			up = "0" // nobody was asked
		}
		if err := write(round, "client", "server", "update", up, values, strconv.Itoa(r.BytesUp)); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}
