package peft

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-fl/starling/model"
)

// Bounds on the patterns of a PEFT adapter, which are regular expressions.
const (
	maxPatterns      = 4096
	maxPatternLength = 1024
)

// scales are the ranks and scales of an adapter's modules, which may each have their
// own (rank_pattern, alpha_pattern). A model.Layout has one of each: matrices of fewer ranks
// are filled up with zeros, and B takes what the scales differ by.
type scales struct {
	config config
	rank   int            // the highest
	alphas []alphaPattern // by pattern
	ranks  map[string]int // by module, once one of its two matrices was seen
}

// alphaPattern is one of an alpha_pattern.
type alphaPattern struct {
	pattern string
	match   *regexp.Regexp
}

func newScales(p config, st *model.SafeTensors) (*scales, error) {
	s := &scales{config: p, rank: p.R, ranks: map[string]int{}}
	highest := 0
	for _, t := range st.Tensors {
		if strings.HasSuffix(t.Name, suffixA) && len(t.Shape) == 2 {
			highest = max(highest, t.Shape[0])
		}
	}
	if len(p.RankPattern) > 0 {
		s.rank = max(1, highest)
	}
	if s.rank > max(1, highest) { // and matrices of that rank would be made where there are none
		return nil, fmt.Errorf("%w: %s: r is %d, the matrices of %s have %d at most", model.ErrPEFT, model.AdapterConfigFile, p.R, model.AdapterFile, highest)
	}
	if len(p.AlphaPattern) > maxPatterns {
		return nil, fmt.Errorf("%w: %s: alpha_pattern has %d patterns, limit %d", model.ErrPEFT, model.AdapterConfigFile, len(p.AlphaPattern), maxPatterns)
	}
	for _, pattern := range slices.Sorted(maps.Keys(p.AlphaPattern)) {
		if len(pattern) > maxPatternLength {
			return nil, fmt.Errorf("%w: %s: alpha_pattern has a pattern of %d bytes, limit %d", model.ErrPEFT, model.AdapterConfigFile, len(pattern), maxPatternLength)
		}
		match, err := regexp.Compile(`^(?:.*\.)?(?:` + pattern + `)$`) // as PEFT looks it up
		if err != nil {
			return nil, fmt.Errorf("%w: %s: alpha_pattern: %w", model.ErrPEFT, model.AdapterConfigFile, err)
		}
		s.alphas = append(s.alphas, alphaPattern{pattern, match})
	}
	return s, nil
}

// alpha is the model.Layout's: its scale at the highest rank is that of a module of this rank
// which no pattern names.
func (s *scales) alpha() float64 {
	if s.config.UseRSLoRA { // scales by alpha / sqrt r
		return s.config.Alpha * math.Sqrt(float64(s.rank))
	}
	return s.config.Alpha
}

// scale is a module's own.
func (s *scales) scale(module string, rank int) (float64, error) {
	alpha, by := s.config.Alpha, ""
	for _, a := range s.alphas {
		pattern := a.pattern
		if !a.match.MatchString(module) {
			continue
		}
		own, ok := s.config.AlphaPattern[pattern].(float64)
		if !ok || own-own != 0 {
			return 0, fmt.Errorf("%w: %s: alpha_pattern has %v for %.80q, want a number", model.ErrPEFT, model.AdapterConfigFile,
				s.config.AlphaPattern[pattern], pattern)
		}
		if by != "" && own != alpha { // PEFT takes the first one of the file
			return 0, fmt.Errorf("%w: %s: alpha_pattern names %.120q by %.80q and by %.80q", model.ErrPEFT, model.AdapterConfigFile, module, by, pattern)
		}
		alpha, by = own, pattern
	}
	if s.config.UseRSLoRA {
		return alpha / math.Sqrt(float64(rank)), nil
	}
	return alpha / float64(rank), nil
}

// moduleIn is the module whose matrix a tensor is, as PEFT names it.
func moduleIn(raw model.RawTensor) string {
	return moduleOf(moduleOf(strings.TrimPrefix(raw.Name, wrapped)))
}

// fit makes of one of a module's matrices the model.Layout's. fresh is what it has there: rows of
// A beyond the module's own rank stay as they start, beside columns of zeros in B, so
// that training can go on with them.
func (s *scales) fit(l *model.Layout, e model.Entry, raw model.RawTensor, v, fresh []float32) ([]float32, error) {
	misshapen := fmt.Errorf("%w: tensor %q has shape %v, want %v", model.ErrPEFT, raw.Name, raw.Shape, e.Shape)
	axis := 0
	if e.Kind == model.KindB {
		axis = 1
	}
	if len(raw.Shape) != 2 || raw.Shape[1-axis] != e.Shape[1-axis] {
		return nil, misshapen
	}
	rank, module := raw.Shape[axis], moduleIn(raw)
	before, seen := s.ranks[module]
	if rank < 1 || rank > s.rank || len(s.config.RankPattern) == 0 && rank != s.rank || seen && before != rank {
		return nil, misshapen
	}
	s.ranks[module] = rank
	own, err := s.scale(module, rank)
	if err != nil {
		return nil, err
	}
	if rank == s.rank && e.Kind == model.KindA {
		return v, nil
	}
	if e.Kind == model.KindA {
		copy(fresh, v)
		return fresh, nil
	}
	out := make([]float32, model.Elements(e.Shape))
	factor := float32(1)
	if len(s.config.RankPattern)+len(s.alphas) > 0 {
		factor = float32(own / l.Method.Scale(s.rank))
	}
	for i := range e.Shape[0] {
		for k := range rank {
			out[i*s.rank+k] = factor * v[i*rank+k]
		}
	}
	return out, nil
}
