package model

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// Bounds on the patterns of a PEFT adapter, which are regular expressions.
const (
	maxPatterns      = 4096
	maxPatternLength = 1024
)

// peftScales are the ranks and scales of an adapter's modules, which may each have their
// own (rank_pattern, alpha_pattern). A Layout has one of each: matrices of fewer ranks
// are filled up with zeros, and B takes what the scales differ by.
type peftScales struct {
	config peftConfig
	rank   int            // the highest
	alphas []peftAlpha    // by pattern
	ranks  map[string]int // by module, once one of its two matrices was seen
}

// peftAlpha is one of an alpha_pattern.
type peftAlpha struct {
	pattern string
	match   *regexp.Regexp
}

func newPEFTScales(p peftConfig, st *SafeTensors) (*peftScales, error) {
	s := &peftScales{config: p, rank: p.R, ranks: map[string]int{}}
	highest := 0
	for _, t := range st.Tensors {
		if strings.HasSuffix(t.Name, loraA) && len(t.Shape) == 2 {
			highest = max(highest, t.Shape[0])
		}
	}
	if len(p.RankPattern) > 0 {
		s.rank = max(1, highest)
	}
	if s.rank > max(1, highest) { // and matrices of that rank would be made where there are none
		return nil, fmt.Errorf("%w: %s: r is %d, the matrices of %s have %d at most", ErrPEFT, AdapterConfigFile, p.R, AdapterFile, highest)
	}
	if len(p.AlphaPattern) > maxPatterns {
		return nil, fmt.Errorf("%w: %s: alpha_pattern has %d patterns, limit %d", ErrPEFT, AdapterConfigFile, len(p.AlphaPattern), maxPatterns)
	}
	for _, pattern := range sortedKeys(p.AlphaPattern) {
		if len(pattern) > maxPatternLength {
			return nil, fmt.Errorf("%w: %s: alpha_pattern has a pattern of %d bytes, limit %d", ErrPEFT, AdapterConfigFile, len(pattern), maxPatternLength)
		}
		match, err := regexp.Compile(`^(?:.*\.)?(?:` + pattern + `)$`) // as PEFT looks it up
		if err != nil {
			return nil, fmt.Errorf("%w: %s: alpha_pattern: %w", ErrPEFT, AdapterConfigFile, err)
		}
		s.alphas = append(s.alphas, peftAlpha{pattern, match})
	}
	return s, nil
}

// alpha is the Layout's: its scale at the highest rank is that of a module of this rank
// which no pattern names.
func (s *peftScales) alpha() float64 {
	if s.config.UseRSLoRA { // scales by alpha / sqrt r
		return s.config.Alpha * math.Sqrt(float64(s.rank))
	}
	return s.config.Alpha
}

// scale is a module's own.
func (s *peftScales) scale(module string, rank int) (float64, error) {
	alpha, by := s.config.Alpha, ""
	for _, a := range s.alphas {
		pattern := a.pattern
		if !a.match.MatchString(module) {
			continue
		}
		own, ok := s.config.AlphaPattern[pattern].(float64)
		if !ok || own-own != 0 {
			return 0, fmt.Errorf("%w: %s: alpha_pattern has %v for %.80q, want a number", ErrPEFT, AdapterConfigFile,
				s.config.AlphaPattern[pattern], pattern)
		}
		if by != "" && own != alpha { // PEFT takes the first one of the file
			return 0, fmt.Errorf("%w: %s: alpha_pattern names %.120q by %.80q and by %.80q", ErrPEFT, AdapterConfigFile, module, by, pattern)
		}
		alpha, by = own, pattern
	}
	if s.config.UseRSLoRA {
		return alpha / math.Sqrt(float64(rank)), nil
	}
	return alpha / float64(rank), nil
}

// peftModule is the module whose matrix a tensor is, as PEFT names it.
func peftModule(raw RawTensor) string {
	return moduleOf(moduleOf(strings.TrimPrefix(raw.Name, peftPrefix)))
}

// fit makes of one of a module's matrices the Layout's. fresh is what it has there: rows of
// A beyond the module's own rank stay as they start, beside columns of zeros in B, so
// that training can go on with them.
func (s *peftScales) fit(l *Layout, e Entry, raw RawTensor, v, fresh []float32) ([]float32, error) {
	misshapen := fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrPEFT, raw.Name, raw.Shape, e.Shape)
	axis := 0
	if e.Kind == KindB {
		axis = 1
	}
	if len(raw.Shape) != 2 || raw.Shape[1-axis] != e.Shape[1-axis] {
		return nil, misshapen
	}
	rank, module := raw.Shape[axis], peftModule(raw)
	before, seen := s.ranks[module]
	if rank < 1 || rank > s.rank || len(s.config.RankPattern) == 0 && rank != s.rank || seen && before != rank {
		return nil, misshapen
	}
	s.ranks[module] = rank
	own, err := s.scale(module, rank)
	if err != nil {
		return nil, err
	}
	if rank == s.rank && e.Kind == KindA {
		return v, nil
	}
	if e.Kind == KindA {
		copy(fresh, v)
		return fresh, nil
	}
	out := make([]float32, Elements(e.Shape))
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
