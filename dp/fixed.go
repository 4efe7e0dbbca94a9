package dp

import (
	"fmt"
	"io"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/uniform"
)

// MethodFixed names a cohort of a fixed size, drawn without replacement. Accountants give
// it no amplification: see [Certificate.AccountedRate] and [Event.Fixed].
const MethodFixed = "fixed/v1"

// FixedDraw returns a draw of exactly size of a population, every set of so many with the same
// probability. It returns their places, ascending. The rate that it is asked for has no meaning
// here. It is an error where there are fewer.
func FixedDraw(p Population, size int) Draw {
	return func(_ float64, rnd io.Reader) ([]int, Certificate, error) {
		who, cert, err := drawFixed(p.n, size, rnd)
		if err == nil {
			cert.Roll = rollMAC(cert.Nonce, p.runs)
		}
		return who, cert, err
	}
}

// FixedDrawNumbered is [FixedDraw] over n members without identity keys, as a simulation has
// them, in time and memory of the cohort's size.
func FixedDrawNumbered(n, size int) Draw {
	return func(_ float64, rnd io.Reader) ([]int, Certificate, error) {
		who, cert, err := drawFixed(n, size, rnd)
		if err == nil {
			cert.Roll = numberedRoll("fixed", n)
		}
		return who, cert, err
	}
}

// MethodSeparated names a cohort of a fixed size, drawn without replacement from those who are not
// in one of the rounds before, as banded noise needs. It does not amplify.
const MethodSeparated = "separated/v1"

// SeparatedDraw is [FixedDraw] of a population that is without those who rest.
func SeparatedDraw(p Population, size int) Draw {
	draw := FixedDraw(p, size)
	return func(rate float64, rnd io.Reader) ([]int, Certificate, error) {
		who, cert, err := draw(rate, rnd)
		cert.Method = MethodSeparated
		return who, cert, err
	}
}

// SeparatedDrawNumbered is [FixedDrawNumbered] from the members that are not resting. Those must be
// in 0..n-1, ascending, none twice.
func SeparatedDrawNumbered(n, size int, resting []int) Draw {
	return func(_ float64, rnd io.Reader) ([]int, Certificate, error) {
		for i, at := range resting {
			if at < 0 || at >= n || i > 0 && at <= resting[i-1] {
				return nil, Certificate{}, fmt.Errorf("dp: draw of %d of %d members: %d rests, out of order: %w", size, n, at, ErrCertificate)
			}
		}
		who, cert, err := drawFixed(n-len(resting), size, rnd)
		if err != nil {
			return nil, cert, err
		}
		skip := 0
		for i, at := range who {
			for skip < len(resting) && resting[skip] <= at+skip {
				skip++
			}
			who[i] = at + skip
		}
		cert.Method, cert.Population, cert.Rate = MethodSeparated, n, float64(size)/float64(n)
		cert.Commitment, cert.Roll = commitment(cert.Nonce, who), numberedRoll("separated", n)
		return who, cert, nil
	}
}

// drawFixed draws size of 0..n-1, ascending, by Floyd's algorithm: the i-th number is
// uniform below n-size+i+1 or, where it is taken, n-size+i itself.
func drawFixed(n, size int, rnd io.Reader) ([]int, Certificate, error) {
	if size < 1 || size > n {
		return nil, Certificate{}, fmt.Errorf("dp: draw of %d of %d members: %w", size, n, ErrCertificate)
	}
	cert := Certificate{Method: MethodFixed, Generator: generatorName(rnd), Rate: float64(size) / float64(n), Population: n}
	if _, err := io.ReadFull(rnd, cert.Nonce[:]); err != nil {
		return nil, cert, fmt.Errorf("dp: drawing %d of %d members: %w: %w", size, n, ErrEntropy, err)
	}
	taken := make(map[int]bool, size)
	for top := n - size; top < n; top++ {
		at, err := uniform.Below(rnd, top+1)
		if err != nil {
			return nil, cert, fmt.Errorf("dp: drawing %d of %d members: %w: %w", size, n, ErrEntropy, err)
		}
		if taken[at] {
			at = top
		}
		taken[at] = true
	}
	who := make([]int, 0, size)
	for at := range taken {
		who = append(who, at)
	}
	slices.Sort(who)
	cert.Commitment = commitment(cert.Nonce, who)
	return who, cert, nil
}
