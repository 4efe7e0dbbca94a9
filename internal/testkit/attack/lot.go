package attack

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
)

// Lots of a dealt round (section 4): ECVRF-EDWARDS25519-SHA512-TAI of RFC 9381.

// times is n * p.
func (p point) times(n *big.Int) point {
	sum := point{big.NewInt(0), big.NewInt(1), big.NewInt(1)}
	for i := n.BitLen() - 1; i >= 0; i-- {
		if sum = sum.plus(sum); n.Bit(i) == 1 {
			sum = sum.plus(p)
		}
	}
	return sum
}

func (p point) minus(q point) point {
	return p.plus(point{mod(new(big.Int).Neg(q.x)), q.y, q.z})
}

// encode is RFC 8032's, section 5.1.2.
func (p point) encode() []byte {
	z := new(big.Int).ModInverse(p.z, prime)
	b := littleEndian(mod(new(big.Int).Mul(p.y, z)))
	b[31] |= byte(mod(z.Mul(p.x, z)).Bit(0)) << 7
	return b
}

// decode is RFC 8032's, section 5.1.3.
func decode(b []byte) (point, bool) {
	y := fromLittleEndian(b)
	sign := y.Bit(255)
	if y.SetBit(y, 255, 0).Cmp(prime) >= 0 {
		return point{}, false
	}
	square := mod(new(big.Int).Mul(y, y))
	v := mod(new(big.Int).Add(new(big.Int).Mul(curveD, square), big.NewInt(1)))
	u := mod(new(big.Int).Sub(square, big.NewInt(1)))
	x := new(big.Int).ModSqrt(mod(u.Mul(u, v.ModInverse(v, prime))), prime)
	if x == nil || x.Sign() == 0 && sign == 1 {
		return point{}, false
	}
	if x.Bit(0) != sign {
		x.Sub(prime, x)
	}
	return point{x, y, big.NewInt(1)}, true
}

func (p point) neutral() bool { return p.x.Sign() == 0 && p.y.Cmp(p.z) == 0 }

func sha(parts ...[]byte) []byte {
	sum := sha512.Sum512(slices.Concat(parts...))
	return sum[:]
}

// toCurve finds an input's point, salted with the key (RFC 9381, section 5.4.1.1).
func toCurve(key, input []byte) point {
	for n := 0; ; n++ {
		if p, ok := decode(sha([]byte{3, 1}, key, input, []byte{byte(n), 0})[:32]); ok {
			if p = p.times(big.NewInt(8)); !p.neutral() {
				return p
			}
		}
	}
}

// drawLot proves what a key draws for an input (section 5.1).
func drawLot(key ed25519.PrivateKey, input []byte) []byte {
	secret := sha(key.Seed())
	secret[0], secret[31] = secret[0]&248, secret[31]&127|64
	x, h := fromLittleEndian(secret[:32]), toCurve(public(key), input)
	gamma := h.times(x)
	k := new(big.Int).Mod(fromLittleEndian(sha(secret[32:], h.encode())), order)
	u, v := point{baseX, baseY, big.NewInt(1)}.times(k), h.times(k)
	c := sha([]byte{3, 2}, public(key), h.encode(), gamma.encode(), u.encode(), v.encode(), []byte{0})[:16]
	s := new(big.Int).Mul(fromLittleEndian(c), x)
	return slices.Concat(gamma.encode(), c, littleEndian(s.Mod(s.Add(s, k), order)))
}

// checkLot is what a key has drawn for an input, false if the lot does not say so
// (section 5.3).
func checkLot(key, input, lot []byte) (output []byte, ok bool) {
	if len(lot) != 80 {
		return nil, false
	}
	y, is := decode(key)
	gamma, too := decode(lot[:32])
	c, s := fromLittleEndian(lot[32:48]), fromLittleEndian(lot[48:])
	if !is || !too || s.Cmp(order) >= 0 || y.times(big.NewInt(8)).neutral() {
		return nil, false
	}
	h := toCurve(key, input)
	u := point{baseX, baseY, big.NewInt(1)}.times(s).minus(y.times(c))
	v := h.times(s).minus(gamma.times(c))
	again := sha([]byte{3, 2}, key, h.encode(), gamma.encode(), u.encode(), v.encode(), []byte{0})[:16]
	return drawn(gamma), slices.Equal(again, lot[32:48])
}

// drawn is what a lot's point says (section 5.2).
func drawn(gamma point) []byte {
	return sha([]byte{3, 3}, gamma.times(big.NewInt(8)).encode(), []byte{0})
}

// deals is what a round's devices draw for: the job, the round, and the head that the plan
// binds.
func (c contract) deals() []byte {
	var name, root string
	var n uint64
	if _, err := fmt.Sscanf(string(c.head), "%s\n%d\n%s\n", &name, &n, &root); err != nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(root)
	if err != nil {
		return nil
	}
	input := slices.Concat([]byte("starling/1 deal\x00"), c.task)
	input = binary.BigEndian.AppendUint64(input, c.round)
	return append(binary.BigEndian.AppendUint64(input, n), b...)
}

// invented are identities for a shard with the device that advertises: the coordinator's own,
// and further ones that are nobody's. In a dealt round they are those of its own that are in
// the device's group, and there are no more than chance has put there.
func (c *Coordinator) invented(plan *Member, advertised Frame, n int) (of []ed25519.PrivateKey, err error) {
	all := c.Invented
	if plan.dealt {
		if all, err = c.together(plan, advertised); err != nil {
			return nil, err
		}
		if len(all) < n {
			return nil, fmt.Errorf("%w: %d of %d keys, %d are needed", ErrApart, len(all), len(c.Invented), n)
		}
	}
	for len(all) < n {
		_, identity, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		all = append(all, identity)
	}
	return all[:n:n], nil
}

// ErrApart is a group in which a coordinator has not enough keys of its own.
var ErrApart = errors.New("attack: too few invented devices are in the victim's group")

// together are the coordinator's own keys in the group of the device that advertises.
func (c *Coordinator) together(plan *Member, advertised Frame) (of []ed25519.PrivateKey, err error) {
	group, err := plan.Group(advertised.Bytes(6), advertised.Bytes(8))
	if err != nil {
		return nil, err
	}
	for _, key := range c.Invented {
		if gamma, ok := decode(drawLot(key, plan.deals())[:32]); ok && plan.groupOf(gamma) == group {
			of = append(of, key)
		}
	}
	return of, nil
}

// Group is the group of the plan that a device with this key and lot is in.
func (c contract) Group(key, lot []byte) (int, error) {
	if _, ok := checkLot(key, c.deals(), lot); !ok {
		return 0, fmt.Errorf("attack: the lot of %x is not its key's", key)
	}
	gamma, _ := decode(lot[:32])
	return c.groupOf(gamma), nil
}

func (c contract) groupOf(gamma point) int {
	group, _ := bits.Mul64(binary.BigEndian.Uint64(drawn(gamma)), uint64(c.groups))
	return int(group)
}
