package secagg

import (
	"fmt"
	"io"

	"filippo.io/edwards25519"
)

// Shamir's sharing over the scalars of edwards25519 (Shamir 1979), with
// Feldman's commitments (1987): device i of a shard holds f(i+1) for a polynomial
// f of degree t-1 whose constant term is the secret; commitment k is f_k*B.

// A polynomial holds t coefficients, the secret first.
type polynomial []*edwards25519.Scalar

func newPolynomial(secret *edwards25519.Scalar, t int, rand io.Reader) (polynomial, error) {
	f := make(polynomial, t)
	f[0] = edwards25519.NewScalar().Set(secret)
	for k := 1; k < t; k++ {
		s, err := randomScalar(rand)
		if err != nil {
			f.erase()
			return nil, err
		}
		f[k] = s
	}
	return f, nil
}

func (f polynomial) erase() {
	zero := edwards25519.NewScalar()
	for _, s := range f {
		if s != nil {
			s.Set(zero)
		}
	}
}

// share is f(i+1) by Horner's rule.
func (f polynomial) share(i int) *edwards25519.Scalar {
	x := smallScalar(i + 1)
	y := edwards25519.NewScalar().Set(f[len(f)-1])
	for k := len(f) - 2; k >= 0; k-- {
		y.MultiplyAdd(y, x, f[k])
	}
	return y
}

// commit appends the t commitments, in constant time.
func (f polynomial) commit(b []byte) []byte {
	var p edwards25519.Point
	for _, a := range f {
		b = append(b, p.ScalarBaseMult(a).Bytes()...)
	}
	return b
}

func smallScalar(x int) *edwards25519.Scalar { return setSmall(new(edwards25519.Scalar), x) }

// setSmall sets s to x, and returns it.
func setSmall(s *edwards25519.Scalar, x int) *edwards25519.Scalar {
	var b [32]byte
	b[0], b[1], b[2] = byte(x), byte(x>>8), byte(x>>16)
	if _, err := s.SetCanonicalBytes(b[:]); err != nil {
		panic(err) // x < 2^24 is canonical
	}
	return s
}

// opens reports whether scalar*B is the encoded commitment.
func opens(commitment []byte, scalar *edwards25519.Scalar) bool {
	return string(new(edwards25519.Point).ScalarBaseMult(scalar).Bytes()) == string(commitment)
}

// A verifier checks single shares against one polynomial's commitments.
type verifier []*edwards25519.Point

// newVerifier decodes t commitments.
func newVerifier(commit []byte) (verifier, error) {
	v := make(verifier, len(commit)/pointSize)
	for k := range v {
		p, err := new(edwards25519.Point).SetBytes(commit[k*pointSize : (k+1)*pointSize])
		if err != nil {
			return nil, fmt.Errorf("%w: commitment %d is not a point", ErrCommitment, k)
		}
		v[k] = p
	}
	return v, nil
}

// valid reports whether share*B = sum_k (i+1)^k * C_k. The right side is
// evaluated by Horner's rule, multiplying by the small public number i+1 with
// at most ten doublings a step; everything here is public by now, so variable time
// is right.
func (v verifier) valid(i int, share *edwards25519.Scalar) bool {
	x := uint(i + 1)
	acc := new(edwards25519.Point).Set(v[len(v)-1])
	for k := len(v) - 2; k >= 0; k-- {
		mulSmall(acc, x)
		acc.Add(acc, v[k])
	}
	return acc.Equal(new(edwards25519.Point).ScalarBaseMult(share)) == 1
}

// mulSmall sets p = x*p for x >= 1, by doubling and adding from the top bit.
func mulSmall(p *edwards25519.Point, x uint) {
	top := 0
	for x>>(top+1) != 0 {
		top++
	}
	var q edwards25519.Point
	q.Set(p)
	for bit := top - 1; bit >= 0; bit-- {
		p.Double(p)
		if x>>bit&1 == 1 {
			p.Add(p, &q)
		}
	}
}

// lagrange returns the coefficients that rebuild f(0) from the shares of the
// devices at indices: prod_{m != j} x_m/(x_m-x_j), with one inversion in all.
func lagrange(indices []int) []*edwards25519.Scalar {
	n := len(indices)
	num, den := make([]*edwards25519.Scalar, n), make([]*edwards25519.Scalar, n)
	var x edwards25519.Scalar
	for j, a := range indices {
		num[j], den[j] = smallScalar(1), smallScalar(1)
		for m, b := range indices {
			if m == j {
				continue
			}
			num[j].Multiply(num[j], setSmall(&x, b+1))
			if b > a {
				den[j].Multiply(den[j], setSmall(&x, b-a))
			} else {
				den[j].Multiply(den[j], x.Negate(setSmall(&x, a-b)))
			}
		}
	}
	// Montgomery's trick: prefix[j] = den[0]*...*den[j-1].
	prefix := make([]*edwards25519.Scalar, n)
	run := smallScalar(1)
	for j := range den {
		prefix[j] = edwards25519.NewScalar().Set(run)
		run.Multiply(run, den[j])
	}
	run.Invert(run)
	for j := n - 1; j >= 0; j-- {
		num[j].Multiply(num[j], prefix[j])
		num[j].Multiply(num[j], run)
		run.Multiply(run, den[j])
	}
	return num
}

// combine is sum_j coefficient_j * share_j.
func combine(coefficients []*edwards25519.Scalar, shares []edwards25519.Scalar) *edwards25519.Scalar {
	s := edwards25519.NewScalar()
	for j := range shares {
		s.MultiplyAdd(coefficients[j], &shares[j], s)
	}
	return s
}
