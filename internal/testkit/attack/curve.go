package attack

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"
	"sync"
)

// The curve of section 4, on big integers: -x^2 + y^2 = 1 + d x^2 y^2 mod p.
var (
	order, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	prime    = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	curveD   = mod(new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), prime)))
	baseX, _ = new(big.Int).SetString("15112221349535400772501151409588531511454012693041857206046113283949847762202", 10)
	baseY, _ = new(big.Int).SetString("46316835694926478169428394003475163141307993866256225615783033603165251855960", 10)
)

func mod(x *big.Int) *big.Int { return x.Mod(x, prime) }

// point is (X/Z, Y/Z).
type point struct{ x, y, z *big.Int }

// plus adds by the complete formulas of Bernstein, Birkner, Joye, Lange and Peters
// 2008, section 6, for a = -1.
func (p point) plus(q point) point {
	mul := func(x, y *big.Int) *big.Int { return mod(new(big.Int).Mul(x, y)) }
	add := func(x, y *big.Int) *big.Int { return new(big.Int).Add(x, y) }
	a := mul(p.z, q.z)
	b, c, d := mul(a, a), mul(p.x, q.x), mul(p.y, q.y)
	e := mul(curveD, mul(c, d))
	f, g := new(big.Int).Sub(b, e), add(b, e)
	cross := mul(add(p.x, p.y), add(q.x, q.y))
	cross.Sub(cross.Sub(cross, c), d)
	return point{mul(mul(a, f), cross), mul(mul(a, g), add(d, c)), mul(f, g)}
}

// powers are 2^i * B.
var powers = sync.OnceValue(func() (table [253]point) {
	table[0] = point{baseX, baseY, big.NewInt(1)}
	for i := 1; i < len(table); i++ {
		table[i] = table[i-1].plus(table[i-1])
	}
	return table
})

// commitment is s * B, encoded as RFC 8032 does.
func commitment(s *big.Int) []byte {
	sum := point{big.NewInt(0), big.NewInt(1), big.NewInt(1)}
	for i, power := range powers() {
		if s.Bit(i) == 1 {
			sum = sum.plus(power)
		}
	}
	return sum.encode()
}

// littleEndian is LE32.
func littleEndian(x *big.Int) []byte {
	b := x.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return b
}

func fromLittleEndian(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

func randomScalar() *big.Int {
	return new(big.Int).Mod(new(big.Int).SetBytes(random(64)), order)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// polynomial holds coefficients, the secret first.
type polynomial []*big.Int

func newPolynomial(secret *big.Int, t int) polynomial {
	f := polynomial{secret}
	for range t - 1 {
		f = append(f, randomScalar())
	}
	return f
}

func (f polynomial) at(x int) *big.Int {
	y, at := new(big.Int), big.NewInt(int64(x))
	for _, c := range slices.Backward(f) {
		y.Mod(y.Add(y.Mul(y, at), c), order)
	}
	return y
}

// interpolate is the value at 0 of the polynomial through the points.
func interpolate(points map[int]*big.Int) *big.Int {
	sum := new(big.Int)
	for i, y := range points {
		term := new(big.Int).Set(y)
		for j := range points {
			if j != i {
				under := new(big.Int).ModInverse(new(big.Int).Mod(big.NewInt(int64(j-i)), order), order)
				term.Mod(term.Mul(term, under.Mul(under, big.NewInt(int64(j)))), order)
			}
		}
		sum.Mod(sum.Add(sum, term), order)
	}
	return sum
}

// kdf is KDF of section 4.
func kdf(secret, info []byte, n int) []byte {
	b, err := hkdf.Key(sha256.New, secret, []byte("starling/secagg/1"), string(info), n)
	if err != nil {
		panic(err) // of a length that we chose
	}
	return b
}

// shared is X25519.
func shared(private, public []byte) ([]byte, error) {
	key, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		return nil, err
	}
	other, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	return key.ECDH(other)
}

func publicKey(private []byte) []byte {
	key, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	return key.PublicKey().Bytes()
}

// addMask adds M(key) to a vector, or takes it off.
func addMask(v []uint32, key []byte, width int, minus bool) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	lane := 4
	if width <= 16 {
		lane = 2
	}
	stream := make([]byte, lane*len(v))
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(stream, stream)
	for i := range v {
		m := uint32(binary.LittleEndian.Uint16(stream[i*lane:]))
		if lane == 4 {
			m = binary.LittleEndian.Uint32(stream[i*lane:])
		}
		if minus {
			m = -m
		}
		v[i] = (v[i] + m) & (1<<width - 1)
	}
}

// seal and open are the sealing of shares.
func gcm(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	g, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return g
}

func seal(key, plain, data []byte) []byte { return gcm(key).Seal(nil, make([]byte, 12), plain, data) }

func open(key, sealed, data []byte) ([]byte, error) {
	return gcm(key).Open(nil, make([]byte, 12), sealed, data)
}

// pack lays values of a width one behind the other, the lowest bit first.
func pack(v []uint32, width int) []byte {
	b := make([]byte, (len(v)*width+7)/8)
	for i, x := range v {
		for k := range width {
			q := i*width + k
			b[q/8] |= byte(x>>k&1) << (q % 8)
		}
	}
	return b
}

func unpack(b []byte, n, width int) []uint32 {
	v := make([]uint32, n)
	for q := range n * width {
		v[q/width] |= uint32(b[q/8]>>(q%8)&1) << (q % width)
	}
	return v
}

// pointsOf is the share of one member's secret that a reveal holds, by its abscissa.
func pointsOf(held, scalars []byte, of, holder int) map[int]*big.Int {
	at := 0
	for i := range of {
		if in(held, i) {
			at++
		}
	}
	points := map[int]*big.Int{}
	if in(held, of) && len(scalars) >= 32*(at+1) {
		points[holder+1] = fromLittleEndian(scalars[32*at:][:32])
	}
	return points
}
