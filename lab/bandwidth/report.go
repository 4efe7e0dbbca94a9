package bandwidth

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Row is one measured setting. Bytes are of one device in one round,
// on average over the measured rounds.
type Row struct {
	Scheme    string  `json:"scheme"`
	Masked    bool    `json:"masked"`
	Codec     string  `json:"codec"`    // of what is not masked
	Downlink  string  `json:"downlink"` // format of the adapter's values
	Rank      int     `json:"rank"`     // 0: a number of values without a rank
	Params    int     `json:"params"`
	RingBits  int     `json:"ring_bits,omitempty"` // a masked coordinate
	Padded    int     `json:"padded"`              // coordinates sent
	Bits      float64 `json:"bits_per_parameter"`  // up, all included
	BytesUp   float64 `json:"bytes_up"`
	BytesDown float64 `json:"bytes_down"`
	Parts     Parts   `json:"parts"` // what BytesUp and BytesDown are made of
	// The update by itself: as float32, quantized (symbols packed as tightly as
	// one device's need), and as it is sent: masked on the ring, or after the codec.
	BytesRaw       float64 `json:"bytes_raw"`
	BytesQuantized float64 `json:"bytes_quantized"`
	BytesVector    float64 `json:"bytes_vector"`
	MBRound        float64 `json:"megabytes_per_round"`
	MBJob          float64 `json:"megabytes_job"` // a device, all rounds, without base and programs
	BytesBase      float64 `json:"bytes_base"`    // base weights, once a device; 0 where none are sent

	RelativeMSE float64 `json:"relative_mse"`
	Cosine      float64 `json:"cosine"`
	// NoiseRatio is the squared error over the expected squared DP noise.
	NoiseRatio float64 `json:"quantization_to_noise"`
	// Recompressed is the size of the packed update, masked where it is masked,
	// after the codec relative to before.
	Recompressed float64 `json:"recompressed"`
	// OwnVariance is the variance of the mean under devices' own noise, over that of the
	// same noise on no lattice; 0 if devices add none.
	OwnVariance float64 `json:"own_noise_variance,omitempty"`
}

func newRow(set *setting, m measurement, s *Subject) Row {
	params := s.Params()
	return Row{
		Scheme: set.Scheme, Masked: set.Masked, Codec: set.Codec, Downlink: set.Downlink, Rank: s.shown, Params: params,
		RingBits: m.Width, Padded: m.Padded, Bits: 8 * m.Up / float64(params), BytesUp: m.Up, BytesDown: m.Down, Parts: m.Parts,
		BytesRaw: 4 * float64(params), BytesQuantized: m.Quantized, BytesVector: m.Parts.Vector,
		MBRound: (m.Up + m.Down) / 1e6, MBJob: float64(set.JobRounds) * (m.Up + m.Down) / 1e6, BytesBase: m.Base,
		RelativeMSE: m.RelativeMSE, Cosine: m.Cosine, NoiseRatio: m.NoiseRatio, Recompressed: m.Recompressed, OwnVariance: m.OwnVariance,
	}
}

// Report has one row for each measured scheme.
type Report struct {
	Preset          string      `json:"preset,omitempty"`
	Updates         string      `json:"updates"` // where they came from
	Cohort          int         `json:"cohort"`
	Shard           int         `json:"shard"`
	Rounds          int         `json:"rounds"`     // measured
	JobRounds       int         `json:"job_rounds"` // that totals are for
	NoiseMultiplier float64     `json:"noise_multiplier"`
	Epsilon         float64     `json:"epsilon"`
	Delta           float64     `json:"delta"`
	SamplingRate    float64     `json:"sampling_rate"`
	Rows            []Row       `json:"rows"`
	Published       []Published `json:"published,omitempty"`
}

func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "Bytes at the devices' sockets, a device and round: %d devices in shards of at most %d, %d rounds.\n", r.Cohort, r.Shard, r.Rounds)
	fmt.Fprintf(w, "Updates: %s.\n", r.Updates)
	fmt.Fprintf(w, "Noise for comparison: multiplier %.4f, epsilon %g at delta %g for %d rounds at sampling rate %g (add/remove, central).\n\n",
		r.NoiseMultiplier, r.Epsilon, r.Delta, r.JobRounds, r.SamplingRate)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "scheme\tmask\tcodec\trank\tvalues\tring\tbits up\tup\tdown\tMB/round\tMB/job\trel. MSE\tcosine\terror/noise\tcodec gains\t")
	for _, x := range r.Rows {
		ring, rank, mask := "-", "-", "no"
		if x.Masked {
			ring, mask = strconv.Itoa(x.RingBits), "yes"
		}
		if x.Rank > 0 {
			rank = strconv.Itoa(x.Rank)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%.2f\t%.0f\t%.0f\t%.3f\t%.2f\t%.2g\t%.5f\t%.2g\t%.1f%%\t\n", x.Scheme, mask, x.Codec, rank, x.Params,
			ring, x.Bits, x.BytesUp, x.BytesDown, x.MBRound, x.MBJob, x.RelativeMSE, x.Cosine, x.NoiseRatio, 100*(1-x.Recompressed))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe update as float32, quantized and as sent, and the other bytes, up and down together:")
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "scheme\tmask\tcodec\trank\traw\tquantized\tsent\tadapter\tkeys, shares\tplan\tsession\tframing\tWebSocket\tbase, once\t")
	for _, x := range r.Rows {
		mask, p := "no", x.Parts
		if x.Masked {
			mask = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", x.Scheme, mask, x.Codec, x.Rank,
			x.BytesRaw, x.BytesQuantized, p.Vector, p.Slices, p.Keys, p.Assignment, p.Session, p.Framing, p.WebSocket, x.BytesBase)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	r.printOwn(w)
	if err := r.printPublished(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, notes)
	return err
}

// slack is how much more variance a scheme may have and count as equal.
const slack = 0.03

// printOwn says, where devices add noise themselves, what each lattice makes of it, and
// which has the fewest bits at the variance of the best.
func (r *Report) printOwn(w io.Writer) {
	best := math.Inf(1)
	for _, x := range r.Rows {
		if x.OwnVariance > 0 {
			best = min(best, x.OwnVariance)
		}
	}
	if math.IsInf(best, 1) {
		return
	}
	fmt.Fprintln(w, "\nWith devices' own noise, at equal epsilon: the variance of the mean over that of the noise on no lattice.")
	least := Row{Bits: math.Inf(1)}
	for _, x := range r.Rows {
		if x.OwnVariance == 0 {
			continue
		}
		fmt.Fprintf(w, "  %-8s rank %2d  %2d bits on the ring, %5.2f a value, all included: %.4f\n", x.Scheme, x.Rank, x.RingBits, x.Bits, x.OwnVariance)
		if x.OwnVariance <= best*(1+slack) && x.Bits < least.Bits {
			least = x
		}
	}
	fmt.Fprintf(w, "The fewest bits within %.0f %% of the least variance: %s.\n", 100*slack, least.Scheme)
}

// notes says what the table does not show by itself.
const notes = `
Up and down are everything that crossed the sockets, but for the base and programs, which are fetched once.
The first round sends a seed in place of the adapter; later ones the difference to what devices hold, if smaller.
The error is that of the mean update before noise; "codec gains" is what the codec takes off the packed update.
Masked bytes are uniform, so nothing is to be had there, as so many random bytes show, and they are sent as they are.
Rows without a mask are a comparison: the service has no mode that sends an update in the clear.
`

// printPublished puts others' figures beside ours.
func (r *Report) printPublished(w io.Writer) error {
	if len(r.Published) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nPublished for the whole job (values times size, not measured on a wire):")
	for _, p := range r.Published {
		fmt.Fprintf(w, "  %-42s %8.1f MB  (computed: %.2f MB)\n", p.What, p.Bytes/1e6, p.Computed/1e6)
	}
	fmt.Fprintf(w, "Ours for %d rounds of 1 device, as sent:\n", r.JobRounds)
	for _, x := range r.Rows {
		name := x.Scheme + " without a mask"
		if x.Masked {
			name = fmt.Sprintf("%s masked, one of a shard of %d", x.Scheme, r.Shard)
		}
		if _, err := fmt.Fprintf(w, "  %-42s %8.2f MB  relative squared error %.2g\n", name+", "+x.Codec, x.MBJob, x.RelativeMSE); err != nil {
			return err
		}
	}
	return nil
}

// WriteCSV writes one line a row under the names that --json uses.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"scheme", "masked", "codec", "downlink", "rank", "params", "cohort", "shard", "ring_bits", "bits_per_parameter", "bytes_up", "bytes_down",
		"bytes_raw", "bytes_quantized", "bytes_vector", "slices", "keys", "assignment", "session", "framing", "websocket", "bytes_base", "megabytes_per_round", "megabytes_job",
		"relative_mse", "cosine", "quantization_to_noise", "recompressed"}
	if err := c.Write(head); err != nil {
		return err
	}
	g := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for _, x := range r.Rows {
		p := x.Parts
		err := c.Write([]string{x.Scheme, strconv.FormatBool(x.Masked), x.Codec, x.Downlink, strconv.Itoa(x.Rank), strconv.Itoa(x.Params),
			strconv.Itoa(r.Cohort), strconv.Itoa(r.Shard), strconv.Itoa(x.RingBits), g(x.Bits), g(x.BytesUp), g(x.BytesDown), g(x.BytesRaw),
			g(x.BytesQuantized), g(x.BytesVector), g(p.Slices), g(p.Keys), g(p.Assignment), g(p.Session), g(p.Framing), g(p.WebSocket), g(x.BytesBase),
			g(x.MBRound), g(x.MBJob), g(x.RelativeMSE), g(x.Cosine), g(x.NoiseRatio), g(x.Recompressed)})
		if err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
