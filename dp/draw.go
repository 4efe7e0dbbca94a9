package dp

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
)

// Roll returns a draw over a population of identity keys, see [DrawCohort], that
// names who is in by place, ascending.
func Roll(enrolled [][]byte) func(q float64, rnd io.Reader) ([]int, Certificate, error) {
	return func(q float64, rnd io.Reader) ([]int, Certificate, error) {
		if err := distinct(enrolled); err != nil {
			return nil, Certificate{}, err
		}
		who, cert, err := flip(len(enrolled), q, rnd)
		if err == nil {
			cert.Roll = rollMAC(cert.Nonce, enrolled)
		}
		return who, cert, err
	}
}

// beginDraw is what every draw over n members without keys begins with: the limit of its
// coins, and a certificate with its nonce, of which kind names the law.
func beginDraw(n int, q float64, kind string, rnd io.Reader) (limit, Certificate, error) {
	l, err := coinLimit(q)
	if err != nil {
		return l, Certificate{}, err
	}
	if n < 1 {
		return l, Certificate{}, fmt.Errorf("dp: draw of an empty population: %w", ErrCertificate)
	}
	cert := Certificate{Method: MethodPoisson, Generator: generatorName(rnd), Rate: q, Population: n}
	if _, err := io.ReadFull(rnd, cert.Nonce[:]); err != nil {
		return l, cert, fmt.Errorf("dp: reading the coins of %d members: %w: %w", n, ErrEntropy, err)
	}
	cert.Roll = numberedRoll(kind, n)
	return l, cert, nil
}

// numberedRoll stands for the roll of n members without keys.
func numberedRoll(kind string, n int) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "starling dp %s v1\x00%d", kind, n))
}

// commitPlace takes the place of a member who is in into a commitment.
func commitPlace(commit hash.Hash, at int) {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], uint64(at))
	commit.Write(place[:])
}

// drawPiece is how many members' coins Numbered holds at a time: 64 kB.
const drawPiece = 4096

// Numbered returns a draw over n members without identity keys, as a simulation
// has them, that names who is in by number, ascending. Every member's coin is the
// one that Roll flips for the same place.
func Numbered(n int) func(q float64, rnd io.Reader) ([]int, Certificate, error) {
	return func(q float64, rnd io.Reader) ([]int, Certificate, error) {
		return flip(n, q, rnd)
	}
}

// flip flips n members' coins and commits itself to them. A million members take 64 kB and no
// table.
func flip(n int, q float64, rnd io.Reader) ([]int, Certificate, error) {
	limit, cert, err := beginDraw(n, q, "numbered", rnd)
	if err != nil {
		return nil, cert, err
	}
	commit := newCommitment(cert.Nonce)
	var who []int
	var coins [16 * drawPiece]byte
	var in [drawPiece]byte
	defer clear(coins[:])
	for from := 0; from < n; from += drawPiece {
		some := min(drawPiece, n-from)
		if _, err := io.ReadFull(rnd, coins[:16*some]); err != nil {
			return nil, Certificate{}, fmt.Errorf("dp: reading the coins of %d members: %w: %w", n, ErrEntropy, err)
		}
		for i := range some {
			in[i] = 0
			if limit.in(coins[16*i:][:16]) {
				in[i] = 1
				who = append(who, from+i)
			}
		}
		commit.Write(in[:some])
	}
	cert.Commitment = [32]byte(commit.Sum(nil))
	return who, cert, nil
}
