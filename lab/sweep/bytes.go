package sweep

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/simulate"
)

// bytesFile lists what a run's messages carry.
const bytesFile = "bytes.csv"

// bytesTable has two rows a round: what every client of the cohort is sent and what
// it sends. A client without an example sends as much as any other. values_bytes is
// the arithmetic of publications, the trained values in the encoding of their way, without
// masks, compression or a header; wire_bytes is what the message holds: the packed slice
// (nothing in the first round of a fresh adapter, which its seed gives), and the masked
// vector. Both are of one message.
func bytesTable(rounds []simulate.Round, w job.Wire) ([]byte, error) {
	var out bytes.Buffer
	table := csv.NewWriter(&out)
	write := func(cells ...string) error { return table.Write(cells) }
	if err := write("round", "from", "to", "kind", "messages", "values_bytes", "wire_bytes"); err != nil {
		return nil, err
	}
	for _, r := range rounds {
		down, err := slicedBytes(w.Downlink, r.Values)
		if err != nil {
			return nil, err
		}
		up, err := updateBytes(w.Uplink, r.Values)
		if err != nil {
			return nil, err
		}
		round, cohort := strconv.Itoa(r.Number), strconv.Itoa(r.Cohort)
		if err := write(round, "server", "client", "slice", cohort, strconv.Itoa(down), strconv.Itoa(r.BytesDown)); err != nil {
			return nil, err
		}
		asked := cohort
		if r.NoiseOnly {
			asked = "0" // nobody was asked
		}
		if err := write(round, "client", "server", "update", asked, strconv.Itoa(up), strconv.Itoa(r.BytesUp)); err != nil {
			return nil, err
		}
	}
	table.Flush()
	return out.Bytes(), table.Error()
}

// slicedBytes are those of n values in a format of slices.
func slicedBytes(format string, n int) (int, error) {
	f, err := quant.LookupFormat(format)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	return f.Size(n), nil
}

// updateBytes are those of n values in a masked scheme's encoding before it is masked: of a
// scheme that is named as a format, as NF4 is, the format's, which has a scale for each block; of any
// other the bits of one device's symbol.
func updateBytes(scheme string, n int) (int, error) {
	if f, err := quant.LookupFormat(scheme); err == nil {
		return f.Size(n), nil
	}
	s, err := quant.Lookup(scheme)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	width, err := quant.Width(s, 1)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	return (n*width + 7) / 8, nil
}
