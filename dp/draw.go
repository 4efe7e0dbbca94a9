package dp

import (
	"crypto/sha256"
	"fmt"
	"io"
)

// A Draw draws members of a population for a round, each with probability q unless it says otherwise, and returns
// their places, ascending.
type Draw func(q float64, rnd io.Reader) (in []int, cert Certificate, err error)

// PoissonDraw returns a draw over a population, see [DrawCohort], that names who is in by place,
// ascending. It takes time in the runs and in the cohort, none in the members.
func PoissonDraw(p Population) Draw {
	return func(q float64, rnd io.Reader) ([]int, Certificate, error) {
		who, cert, err := PoissonDrawNumbered(p.n)(q, rnd)
		if err == nil {
			cert.Roll = rollMAC(cert.Nonce, p.runs)
		}
		return who, cert, err
	}
}

// PoissonDrawNumbered returns a draw over n members without identity keys, as a simulation has
// them, that names who is in by number, ascending, in time and memory of the cohort's size. From
// one stream it draws the places that PoissonDraw does.
func PoissonDrawNumbered(n int) Draw {
	return func(q float64, rnd io.Reader) ([]int, Certificate, error) {
		limit, err := coinLimit(q)
		if err != nil {
			return nil, Certificate{}, err
		}
		if n < 1 {
			return nil, Certificate{}, fmt.Errorf("dp: draw of an empty population: %w", ErrCertificate)
		}
		cert := Certificate{Method: MethodPoisson, Generator: generatorName(rnd), Rate: q, Population: n}
		if _, err := io.ReadFull(rnd, cert.Nonce[:]); err != nil {
			return nil, cert, fmt.Errorf("dp: reading a nonce: %w: %w", ErrEntropy, err)
		}
		cert.Roll = numberedRoll("numbered", n)
		who, err := newSkips(limit, rnd).draw(n)
		if err != nil {
			return nil, cert, fmt.Errorf("dp: reading the coins of %d members: %w: %w", n, ErrEntropy, err)
		}
		cert.Commitment = commitment(cert.Nonce, who)
		return who, cert, nil
	}
}

// numberedRoll stands for the roll of n members without keys.
func numberedRoll(kind string, n int) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "starling dp %s v1\x00%d", kind, n))
}
