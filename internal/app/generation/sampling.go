// Package generation writes texts with a released adapter over a decoder: what comes next is
// drawn from the scores of nn.Writer, token by token, as transformers' generate draws it. An
// owner's own program runs it for its owner: nothing of it protects anybody.
package generation

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/data/task"
)

// Sampling says how the next token follows from scores, in the order of transformers:
// repetition, temperature, top k, top p; biases come before these, presence and frequency behind
// repetition, as vLLM has it.
type Sampling struct {
	Temperature float64 `json:"temperature"`        // 0: the likeliest token
	TopK        int     `json:"top_k"`              // of so many likeliest tokens alone; 0: of all
	TopP        float64 `json:"top_p"`              // of the fewest likeliest that together have this probability; 1: of all
	Repetition  float64 `json:"repetition_penalty"` // divides positive scores of tokens in the text, multiplies negative ones; 1: none
	Presence    float64 `json:"presence_penalty"`   // is taken from the scores of tokens that are written already
	Frequency   float64 `json:"frequency_penalty"`  // likewise, as many times as they are written
	Seed        uint64  `json:"seed"`

	Bias map[int32]float64 `json:"logit_bias,omitempty"` // is added to the scores of tokens
}

// maxBias bounds the tokens that have a bias.
const maxBias = 1024

// Validate refuses settings out of range.
func (s Sampling) Validate() error {
	switch {
	case !(s.Temperature >= 0 && s.Temperature <= 100):
		return fmt.Errorf("temperature is %v, want 0..100", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top_k is %d, want 0 or more", s.TopK)
	case !(s.TopP > 0 && s.TopP <= 1):
		return fmt.Errorf("top_p is %v, want within (0, 1]", s.TopP)
	case !(s.Repetition > 0 && s.Repetition <= 100):
		return fmt.Errorf("repetition_penalty is %v, want within (0, 100]", s.Repetition)
	case !(s.Presence >= -2 && s.Presence <= 2):
		return fmt.Errorf("presence_penalty is %v, want -2..2", s.Presence)
	case !(s.Frequency >= -2 && s.Frequency <= 2):
		return fmt.Errorf("frequency_penalty is %v, want -2..2", s.Frequency)
	case len(s.Bias) > maxBias:
		return fmt.Errorf("logit_bias names %d tokens, the limit is %d", len(s.Bias), maxBias)
	}
	for id, x := range s.Bias {
		if !(x >= -100 && x <= 100) {
			return fmt.Errorf("logit_bias of token %d is %v, want -100..100", id, x)
		}
	}
	return nil
}

// within refuses biases of tokens that a vocabulary of the size does not have.
func (s Sampling) within(size int) error {
	for id := range s.Bias {
		if id < 0 || int(id) >= size {
			return fmt.Errorf("logit_bias names token %d, want 0..%d", id, size-1)
		}
	}
	return nil
}

// sampler draws tokens from one stream.
type sampler struct {
	Sampling
	rng *rand.Rand
}

func (s Sampling) sampler() *sampler {
	return &sampler{s, rand.New(rand.NewPCG(s.Seed, 0x67656e65))}
}

// next is the token that comes behind a text, whose first tokens are read and the others written; scores are changed.
func (s *sampler) next(scores []float32, text []int32, read int) int32 {
	for id, x := range s.Bias {
		scores[id] += float32(x)
	}
	s.repeat(scores, text)
	s.vary(scores, text[read:])
	if s.Temperature == 0 {
		return int32(task.Best(scores))
	}
	ids, p := s.probabilities(scores)
	x := s.rng.Float64()
	for i, q := range p {
		if x -= q; x < 0 {
			return ids[i]
		}
	}
	return ids[0]
}

// repeat makes tokens that are in the text less likely (Keskar et al. 2019).
func (s *sampler) repeat(scores []float32, text []int32) {
	if s.Repetition == 1 {
		return
	}
	done := map[int32]bool{}
	for _, id := range text {
		switch {
		case done[id]:
		case scores[id] > 0:
			scores[id] = float32(float64(scores[id]) / s.Repetition)
		default:
			scores[id] = float32(float64(scores[id]) * s.Repetition)
		}
		done[id] = true
	}
}

// vary makes tokens that are written less likely.
func (s *sampler) vary(scores []float32, written []int32) {
	if s.Presence == 0 && s.Frequency == 0 {
		return
	}
	times := map[int32]float64{}
	for _, id := range written {
		times[id]++
	}
	for id, n := range times {
		scores[id] = float32(float64(scores[id]) - s.Presence - s.Frequency*n)
	}
}

// probabilities are of the tokens that may be drawn, the likeliest first.
func (s *sampler) probabilities(scores []float32) (ids []int32, p []float64) {
	ids = make([]int32, len(scores))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	if s.TopK > 0 && s.TopK < len(ids) {
		n := s.TopK
		for n < len(ids) && scores[ids[n]] == scores[ids[n-1]] { // as likely as the last of them
			n++
		}
		ids = ids[:n]
	}
	p = make([]float64, len(ids))
	top := float64(scores[ids[0]])
	for i, id := range ids {
		p[i] = math.Exp((float64(scores[id]) - top) / s.Temperature)
	}
	normalize(p)
	if s.TopP < 1 {
		n, sum := 0, 0.0
		for n < len(p) && (n == 0 || sum < s.TopP) {
			sum += p[n]
			n++
		}
		ids, p = ids[:n], p[:n]
		normalize(p)
	}
	return ids, p
}

func normalize(p []float64) {
	sum := 0.0
	for _, x := range p {
		sum += x
	}
	for i := range p {
		p[i] /= sum
	}
}
