package dp

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
)

// ErrCertificate reports a sampling certificate that does not match the draw, the population or the
// rate that it should.
var ErrCertificate = errors.New("bad sampling certificate")

// MethodPoisson names the one way of choosing a cohort that amplification by
// sampling is proved for: an independent coin of probability q for each member.
const MethodPoisson = "poisson/v1"

// Certificate says how a cohort was chosen: by which method and generator, with
// which coin, over which population. It holds a commitment to who was chosen,
// not the choice, because amplification needs that hidden; Nonce opens it.
type Certificate struct {
	Method     string   `json:"method"`     // MethodPoisson, or another name: then q counts as 1
	Generator  string   `json:"generator"`  // where the coins came from
	Rate       float64  `json:"rate"`       // q of every coin, exact
	Population int      `json:"population"` // members that had a coin
	Roll       [32]byte `json:"roll"`       // HMAC of the population's identity keys, in order, under the nonce; see Run
	Commitment [32]byte `json:"commitment"` // SHA-256(nonce, places of the drawn)

	Nonce [32]byte `json:"-"` // secret: opens Roll and Commitment for an auditor
}

// DrawCohort has each enrolled identity key in with probability exactly q, independently of all others, and
// returns those drawn. It draws the gaps between them, see skips. If rnd fails none is drawn. Two equal or
// empty keys are an error: one identity has one coin.
//
// A cohort is drawn once a round. It is never drawn again for a reconnect, and no member is
// replaced: that would change the coin.
func DrawCohort(enrolled [][]byte, q float64, rnd io.Reader) (in []bool, cert Certificate, err error) {
	population, err := Keys(enrolled)
	if err != nil {
		return nil, cert, err
	}
	who, cert, err := PoissonDraw(population)(q, rnd)
	if err != nil {
		return nil, cert, err
	}
	in = make([]bool, len(enrolled))
	for _, i := range who {
		in[i] = true
	}
	return in, cert, nil
}

// coinLimit is q*2^128, exact: q = m * 2^-s with m below 2^53 and s at most 117.
func coinLimit(q float64) (*big.Int, error) {
	if !(q > 0 && q <= 1) || q < 0x1p-64 {
		return nil, fmt.Errorf("dp: sampling rate %v, want in [2^-64, 1]: %w", q, ErrCertificate)
	}
	limit, _ := new(big.Float).SetMantExp(new(big.Float).SetFloat64(q), coinBits).Int(nil)
	return limit, nil
}

func generatorName(rnd io.Reader) string {
	if rnd == rand.Reader {
		return "crypto/rand"
	}
	return fmt.Sprintf("injected %T", rnd)
}

// commitment is to the places of those who are in, ascending.
func commitment(nonce [32]byte, who []int) [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp cohort v2\x00"))
	h.Write(nonce[:])
	for _, at := range who {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(at)))
	}
	return [32]byte(h.Sum(nil))
}

// bitCommitment is what certificates had while each member's coin was flipped by itself: to a
// byte a member.
func bitCommitment(nonce [32]byte, in []bool) [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp cohort v1\x00"))
	h.Write(nonce[:])
	b := make([]byte, len(in))
	for i, x := range in {
		if x {
			b[i] = 1
		}
	}
	h.Write(b)
	return [32]byte(h.Sum(nil))
}

// Verify holds a certificate and its nonce against the population and the
// cohort it claims to be about. It cannot show that the coins were fair: that
// rests on the generator it names. Certificates from before the roll had a key or runs, and
// before the commitment was to places, are understood.
func (c Certificate) Verify(enrolled [][]byte, in []bool) error {
	if len(enrolled) != c.Population || len(in) != c.Population {
		return fmt.Errorf("dp: certificate over %d members compared with %d members and %d choices: %w", c.Population, len(enrolled), len(in), ErrCertificate)
	}
	p, err := Keys(enrolled)
	if err != nil {
		return err
	}
	if rollMAC(c.Nonce, p.runs) != c.Roll && rollMACv2(c.Nonce, enrolled) != c.Roll && rollHash(enrolled) != c.Roll {
		return fmt.Errorf("dp: certificate is about another population: %w", ErrCertificate)
	}
	var who []int
	for i, is := range in {
		if is {
			who = append(who, i)
		}
	}
	if commitment(c.Nonce, who) != c.Commitment && bitCommitment(c.Nonce, in) != c.Commitment {
		return fmt.Errorf("dp: certificate is about another cohort: %w", ErrCertificate)
	}
	return nil
}

// AccountedRate returns the sampling rate that accountants may use: the coin's own if the
// certificate is of independent coins of a finite known probability, else 1 (no amplification).
func (c Certificate) AccountedRate() float64 {
	if c.Method != MethodPoisson || c.Population < 1 || !(c.Rate > 0 && c.Rate <= 1) {
		return 1
	}
	return c.Rate
}

// Hash names the certificate in a ledger event. The secret nonce is not in it.
func (c Certificate) Hash() [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp certificate v1\x00"))
	var b []byte
	for _, s := range []string{c.Method, c.Generator} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.Rate))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Population))
	h.Write(b)
	h.Write(c.Roll[:])
	h.Write(c.Commitment[:])
	return [32]byte(h.Sum(nil))
}
