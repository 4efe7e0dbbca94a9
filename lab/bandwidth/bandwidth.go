// Package bandwidth measures what a quantization scheme costs on the wire and
// what it loses: real rounds of a coordinator and a fleet of devices in this
// process, joined by real sockets, every byte counted where it crosses a
// device's socket.
//
// Masked schemes run the whole protocol. Schemes without a mask, which no
// coordinator offers, run over the same sockets for comparison.
package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/quant"
)

// Scheme is one way to send an update.
type Scheme struct {
	Name   string
	Masked bool // by secure aggregation; else in the clear
}

// Schemes lists every scheme, masked ones first.
func Schemes() []Scheme {
	var all []Scheme
	for _, name := range quant.SchemeNames() {
		all = append(all, Scheme{name, true})
	}
	for _, name := range quant.FormatNames() {
		all = append(all, Scheme{name, false})
	}
	return all
}

func (s Scheme) String() string {
	if s.Masked {
		return "masked:" + s.Name
	}
	return "clear:" + s.Name
}

// Config holds the settings of all rows of a report.
type Config struct {
	Cohort          int     // devices in a round, 3..1024
	Shard           int     // largest shard, 3..1024, from which the ring's width follows
	Rounds          int     // rounds to measure, 2..100; the first sends a seed down, later ones the adapter
	JobRounds       int     // rounds of the job that totals are for, 1..1000000
	Downlink        string  // format of the adapter on its way down, with masked schemes
	Clip            float64 // L2 clip norm, above 0, at most 1e6
	NoiseMultiplier float64 // z of the noise that errors are compared with, positive
	OwnNoise        float64 // what each device adds itself, over the clip norm; 0: nothing
}

// SettingError is a setting that cannot be measured.
type SettingError struct {
	Setting string // as in the command's flag
	Err     error
}

func (e *SettingError) Error() string { return e.Setting + ": " + e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

// Validate names the first setting that cannot be; the error is a *SettingError.
func (c Config) Validate() error {
	bad := func(setting, format string, args ...any) error {
		return &SettingError{setting, fmt.Errorf(format, args...)}
	}
	if _, err := quant.LookupFormat(c.Downlink); err != nil {
		return bad("downlink", "no format %q; there are %s", c.Downlink, strings.Join(quant.FormatNames(), ", "))
	}
	switch {
	case c.Cohort < 3 || c.Cohort > 1024:
		return bad("cohort", "%d, want 3..1024", c.Cohort)
	case c.Shard < 3 || c.Shard > 1024:
		return bad("shard", "%d, want 3..1024", c.Shard)
	case c.Rounds < 2 || c.Rounds > 100:
		return bad("rounds", "%d, want 2..100", c.Rounds)
	case c.JobRounds < 1 || c.JobRounds > 1_000_000:
		return bad("job-rounds", "%d, want 1..1000000", c.JobRounds)
	case !(c.Clip > 0) || c.Clip > 1e6:
		return bad("clip", "%v, want above 0, at most 1e6", c.Clip)
	case !(c.OwnNoise >= 0) || c.OwnNoise > 1e3:
		return bad("own-noise", "%v, want 0..1000", c.OwnNoise)
	case !(c.NoiseMultiplier > 0):
		return bad("noise multiplier", "%v, must be positive", c.NoiseMultiplier)
	}
	return nil
}

// setting is one row to measure.
type setting struct {
	Config
	Scheme string
	Masked bool
	Codec  string // of what is not masked
}

// Measure runs the rounds of one scheme with one byte codec on a subject whose
// updates are one a device.
func (c Config) Measure(ctx context.Context, s *Subject, scheme Scheme, codec string) (Row, error) {
	if err := c.Validate(); err != nil {
		return Row{}, err
	}
	if !slices.Contains(Schemes(), scheme) {
		return Row{}, &SettingError{"schemes", fmt.Errorf("no scheme %q", scheme)}
	}
	if _, err := quant.LookupCodec(codec); err != nil || codec == "" {
		return Row{}, &SettingError{"codecs", fmt.Errorf("no codec %q; there are %s", codec, strings.Join(quant.CodecNames(), ", "))}
	}
	if len(s.updates) != c.Cohort {
		return Row{}, &SettingError{"cohort", errors.New("the subject has another number of updates")}
	}
	for k, u := range s.updates {
		if n := l2.Norm(u); n-n != 0 {
			return Row{}, fmt.Errorf("bandwidth: the update of device %d has a norm of %v", k, n)
		}
	}
	set := &setting{Config: c, Scheme: scheme.Name, Masked: scheme.Masked, Codec: codec}
	measure := measureMasked
	if !scheme.Masked {
		set.Downlink, measure = scheme.Name, measureClear
	}
	m, err := measure(ctx, set, s)
	if err != nil {
		return Row{}, fmt.Errorf("%s with %s: %w", scheme, codec, err)
	}
	return newRow(set, m, s), nil
}
