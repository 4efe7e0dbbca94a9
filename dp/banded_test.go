package dp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"
)

type bandedCase struct {
	Rows            uint32  `json:"rows"`
	Band            uint32  `json:"band"`
	Separation      uint32  `json:"separation"`
	Eighths         uint8   `json:"eighths"`
	Sensitivity2    int64   `json:"sensitivity2"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
}

func bandedGolden(t *testing.T) (table map[string][]int64, cases []bandedCase) {
	t.Helper()
	data, err := os.ReadFile("testdata/banded.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Coefficients map[string][]int64 `json:"coefficients"`
		Cases        []bandedCase       `json:"cases"`
	}
	if err := json.Unmarshal(data, &g); err != nil || len(g.Cases) < 15 || len(g.Coefficients) != 7 {
		t.Fatalf("%d cases, %d exponents, %v", len(g.Cases), len(g.Coefficients), err)
	}
	return g.Coefficients, g.Cases
}

// Coefficients are the exact ones, rounded up, never rise, and fall at first.
func TestCoefficientsAreExact(t *testing.T) {
	table, _ := bandedGolden(t)
	for name, want := range table {
		eighths, _ := strconv.Atoi(name)
		c := coefficients(uint8(eighths))
		for i, at := range []int{0, 1, 2, 3, 10, 99, 1000, MaxBand - 1} {
			if c[at] != want[i] {
				t.Errorf("%d eighths: coefficient %d is %d, want %d", eighths, at, c[at], want[i])
			}
		}
		if c[0] <= c[1] || !slices.IsSortedFunc(c, func(a, b int64) int { return int(b - a) }) {
			t.Errorf("%d eighths: coefficients rise", eighths)
		}
	}
}

// Cost, over all rows, is the squared sensitivity by brute force over all that a device may do,
// whether rows are one event or one each, in any order.
func TestCostIsTheSensitivityOverAllPatterns(t *testing.T) {
	_, cases := bandedGolden(t)
	for _, c := range cases {
		want := float64(c.Sensitivity2) * 0x1p-32
		all := Banded{c.Band, c.Separation, c.Eighths, 1}
		if got := all.Cost(c.Rows); got != want {
			t.Errorf("%+v: together they cost %v, want %v", c, got, want)
		}
		sum := 0.0
		for row := c.Rows; row >= 1; row-- {
			one := all
			one.Row = uint64(row)
			sum += one.Cost(1)
		}
		if sum != want { // of dyadic numbers, and exact
			t.Errorf("%+v: one by one they cost %v, want %v", c, sum, want)
		}
	}
	// A long job's is rounded up, and by no more than a float's last place.
	long, period := Banded{MaxBand, MaxBand, 7, 1}, new(big.Rat).SetFrac64(squares(7, MaxBand), 1<<32)
	for rows := uint32(MaxRounds - 4*MaxBand + 1); rows <= MaxRounds; rows += MaxBand {
		want := new(big.Rat).Mul(period, big.NewRat(int64(rows/MaxBand), 1))
		want.Add(want, big.NewRat(1, 1))
		got := new(big.Rat).SetFloat64(long.Cost(rows))
		if got.Cmp(want) < 0 || got.Cmp(want.Mul(want, big.NewRat(1<<51+1, 1<<51))) > 0 {
			t.Errorf("%d rows cost %v, want %s", rows, long.Cost(rows), want.FloatString(9))
		}
	}
}

func bandedEvent(t testing.TB, b Banded, count uint32) Event {
	t.Helper()
	e := Rounds(Mechanism{1, 2.5}, int(count))
	e.Fixed, e.Banded = true, b
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	return e
}

// Rows compose to one Gaussian; two jobs' rows, and a row that was charged only, add to it.
func TestBandedRowsComposeToOneGaussian(t *testing.T) {
	b := Banded{4, 5, 4, 1}
	gaussian := func(events ...Event) float64 {
		c, err := Compose(events, View{Observer: Participants})
		if err != nil || len(c.Parts) != 1 || c.Parts[0].Q != 1 || c.Parts[0].Rounds != 1 || !c.ZeroOut {
			t.Fatalf("%+v, %v", c, err)
		}
		return 6.25 / (c.Parts[0].Z * c.Parts[0].Z)
	}
	all := gaussian(bandedEvent(t, b, 11))
	if want := b.Cost(11); math.Abs(all-want) > 1e-13*want || all < want {
		t.Errorf("eleven rows come to %v, want %v", all, want)
	}
	both := []Event{}
	for row := range uint64(11) {
		one := b
		one.Row = row + 1
		both = append(both, bandedEvent(t, one, 1), bandedEvent(t, one, 1))
	}
	if got := gaussian(both...); math.Abs(got-2*all) > 1e-13*got {
		t.Errorf("two jobs come to %v, want %v", got, 2*all)
	}
	charged := bandedEvent(t, Banded{4, 5, 4, 5}, 1) // whose row would cost nothing more
	if charged.Banded.Cost(1) != 0 {
		t.Fatal("the row costs")
	}
	charged.Kind = KindCharged
	if got := gaussian(bandedEvent(t, b, 11), charged); math.Abs(got-all-1) > 1e-12 {
		t.Errorf("a charged row adds %v, want 1", got-all)
	}

	if e := bandedEvent(t, Banded{4, 5, 4, 5}, 1); AtMost(e) != charged || AtMost(Rounds(Mechanism{1, 2}, 1)) != Rounds(Mechanism{1, 2}, 1) {
		t.Errorf("at most %+v", AtMost(e))
	}

	g, err := RDPEpsilon(both, 1e-6)
	if err != nil || g.Rounds != 22 || g.Sampling != "none (q = 1), a device at most once in 5 rounds" || g.Adjacency != ZeroOut(AdjacencyAddRemove) {
		t.Errorf("%s, %v", g, err)
	}
	if g, err = RDPEpsilon(append(both, Rounds(Mechanism{1, 2}, 1)), 1e-6); err != nil || g.Rounds != 23 || g.Sampling != SamplingNone {
		t.Errorf("with another round: %s, %v", g, err)
	}
	if _, err := Compose(both, View{Observer: Untrusting}); !errors.Is(err, ErrNoBound) {
		t.Errorf("against the coordinator: %v", err)
	}
}

func TestBandedEventsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Event){
		"no band":       func(e *Event) { e.Banded.Band = 0 },
		"long band":     func(e *Event) { e.Banded.Band, e.Banded.Separation = MaxBand+1, MaxBand+1 },
		"close rounds":  func(e *Event) { e.Banded.Separation = 3 },
		"far rounds":    func(e *Event) { e.Banded.Separation = MaxRounds + 1 },
		"exponent 0":    func(e *Event) { e.Banded.Eighths = 0 },
		"exponent 1":    func(e *Event) { e.Banded.Eighths = 8 },
		"row 0":         func(e *Event) { e.Banded.Row = 0 },
		"row":           func(e *Event) { e.Banded.Row = MaxRounds + 1 },
		"coins":         func(e *Event) { e.Fixed = false },
		"sampled":       func(e *Event) { e.SamplingRate, e.Fixed = 0.5, false },
		"provider":      func(e *Event) { e.ProviderRate = 1 },
		"devices noise": func(e *Event) { e.Own = OwnNoise{2.5, 4, 2, false} },
		"scaled":        func(e *Event) { e.NoiseScale, e.SimulatedRate = 0.5, 0.5 },
	} {
		e := bandedEvent(t, Banded{4, 5, 4, 7}, 2)
		b, err := e.MarshalBinary()
		if err != nil || len(b) != eventSize+bandedSize {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		var back Event
		if err := back.UnmarshalBinary(b); err != nil || back != e {
			t.Fatalf("decoded %+v (%v), want %+v", back, err, e)
		}
		if change(&e); !errors.Is(e.Check(), ErrEvent) {
			t.Errorf("%s passes", name)
		}
	}
	none := bandedEvent(t, Banded{1, 1, 1, 1}, 1)
	b, _ := none.MarshalBinary()
	clear(b[eventSize:])
	if err := new(Event).UnmarshalBinary(b); !errors.Is(err, ErrEvent) {
		t.Errorf("an event whose row is zero: %v", err)
	}
}

// recorded draws noise and keeps what it drew.
type recorded struct {
	of    Noise
	v     Variance
	drawn [][]int64
	fails error
}

func (r *recorded) AddNoise(dst []int64, v Variance) error {
	if r.fails != nil {
		clear(dst)
		return r.fails
	}
	was := slices.Clone(dst)
	err := r.of.AddNoise(dst, v)
	for i := range was {
		was[i] = dst[i] - was[i]
	}
	r.v, r.drawn = v, append(r.drawn, was)
	return err
}

func bandedSpec(round uint64, b Banded, kept *Correlated) ReleaseSpec {
	b.Row = round
	return ReleaseSpec{Round: round, SamplingRate: 1, B2: 10_000, NoiseMultiplier: 1.5, NoiseScale: 1, Fixed: true, Banded: b, Kept: kept}
}

// What is released is what follows from the mechanism's outputs y_t, computed here as they are
// defined: from the true sums of the last rows, by whole numbers without bound.
func TestBandedReleasesFollowFromTheMechanism(t *testing.T) {
	const dim, rows = 5, 30
	b := Banded{7, 9, 5, 1}
	kept, err := NewCorrelated(b, dim)
	if err != nil {
		t.Fatal(err)
	}
	noise := &recorded{of: NewSampler(drbg(3))}
	c := coefficients(b.Eighths)
	var sums, released [][]int64
	for row := range uint64(rows) {
		x := make([]int64, dim)
		for k := range x {
			x[k] = int64(row)*977 - int64(k)*31_000_000_011
		}
		sums = append(sums, slices.Clone(x))
		e, err := Release(x, bandedSpec(row+1, b, kept), noise)
		if err != nil || e.Banded.Row != row+1 {
			t.Fatal(e, err)
		}
		if want := e.Sigma2.Float() * (1 << 32); noise.v.Float() != want {
			t.Fatalf("drawn with variance %v, want %v", noise.v.Float(), want)
		}
		kept.Keep()
		z := noise.drawn[row]
		got := slices.Clone(x)
		for k := range got {
			y := big.NewInt(z[k])
			for i := 0; i < int(b.Band) && i <= int(row); i++ {
				y.Add(y, new(big.Int).Mul(big.NewInt(c[i]), big.NewInt(sums[int(row)-i][k])))
			}
			for i := 1; i < int(b.Band) && i <= int(row); i++ { // from here on public numbers alone
				y.Sub(y, new(big.Int).Mul(big.NewInt(c[i]), big.NewInt(released[int(row)-i][k])))
			}
			want := y.Add(y, big.NewInt(1<<15)).Rsh(y, 16).Int64()
			if got[k] != want {
				t.Fatalf("row %d, coordinate %d: released %d, want %d", row+1, k, got[k], want)
			}
		}
		released = append(released, got)
	}
	if kept.Rows() != int(b.Band)-1 {
		t.Errorf("%d rows are kept", kept.Rows())
	}
}

// The noise of a prefix is what the coefficients say, far below that of independent rows.
// Each of the three bounds is missed by chance with probability below 1e-8.
func TestBandedNoiseCancels(t *testing.T) {
	const dim, rows = 4000, 40
	b := Banded{20, 20, 4, 1}
	kept, _ := NewCorrelated(b, dim)
	total, noise := make([]int64, dim), NewSampler(drbg(4))
	c := coefficients(b.Eighths)
	inverse, prefix, want, alone := make([]float64, rows), 0.0, 0.0, 0.0
	var last float64
	for row := range rows {
		x := make([]int64, dim)
		if _, err := Release(x, bandedSpec(uint64(row+1), b, kept), noise); err != nil {
			t.Fatal(err)
		}
		kept.Keep()
		last = 0
		for k, w := range x {
			total[k] += w
			last += float64(w) * float64(w) / dim
		}
		if row == 0 {
			inverse[0] = 1
		}
		for i := 1; i < int(b.Band) && i <= row; i++ {
			inverse[row] -= float64(c[i]) / 65536 * inverse[row-i]
		}
		prefix += inverse[row]
		want, alone = want+prefix*prefix, alone+inverse[row]*inverse[row]
	}
	var got float64
	for _, w := range total {
		got += float64(w) * float64(w) / dim
	}
	const sigma2, within = 22_500, 0.15 // of a chi squared over 4,000: 6.7 standard deviations
	if got /= sigma2; math.Abs(got/want-1) > within {
		t.Errorf("variance of 40 rows' sum is %v, want %v", got, want)
	}
	if last /= sigma2; math.Abs(last/alone-1) > within {
		t.Errorf("variance of the last row is %v, want %v", last, alone)
	}
	if got > 40/4.0 {
		t.Errorf("variance %v, where independent rows would have 40", got)
	}
}

// A row that is not kept leaves no trace, a failure clears the sum, and the state survives being
// written: what is drawn next is the same.
func TestCorrelatedKeepsWhatIsReleased(t *testing.T) {
	const dim = 300
	b := Banded{4, 4, 4, 1}
	kept, _ := NewCorrelated(b, dim)
	next := func(of *Correlated, row uint64, seed byte) []int64 {
		x := make([]int64, dim)
		if _, err := Release(x, bandedSpec(row, b, of), NewSampler(drbg(seed))); err != nil {
			t.Fatal(err)
		}
		return x
	}
	for row := range uint64(6) {
		next(kept, row+1, byte(row))
		kept.Keep()
		kept.Keep() // twice is once
		if want := min(int(row)+1, 3); kept.Rows() != want {
			t.Fatalf("%d rows are kept after %d, want %d", kept.Rows(), row+1, want)
		}
	}
	written, err := kept.AppendBinary(nil)
	if err != nil || len(written) != 3*4*dim {
		t.Fatal(len(written), err)
	}
	again, _ := NewCorrelated(b, dim)
	if err := again.UnmarshalBinary(written); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(next(kept, 7, 50), next(again, 7, 50)) {
		t.Error("another row follows from what was written")
	}
	if slices.Equal(next(kept, 7, 51), next(again, 7, 52)) {
		t.Error("other noise, the same row")
	}
	if still, _ := kept.AppendBinary(nil); !bytes.Equal(still, written) {
		t.Error("a row that was not kept is kept")
	}
	failed := &recorded{fails: errors.New("no noise")}
	for name, release := range map[string]func(x []int64) error{
		"a source that fails": func(x []int64) error { _, err := Release(x, bandedSpec(7, b, kept), failed); return err },
		"no state":            func(x []int64) error { _, err := Release(x, bandedSpec(7, b, nil), NewSampler(drbg(1))); return err },
		"another length": func(x []int64) error {
			_, err := Release(x[:9], bandedSpec(7, b, kept), NewSampler(drbg(1)))
			return err
		},
		"a sum at the end of 64 bits": func(x []int64) error {
			for i := range x {
				x[i] = math.MaxInt64
			}
			_, err := Release(x, bandedSpec(7, b, kept), NewSampler(drbg(1)))
			return err
		},
		"noise beyond 32 bits": func(x []int64) error {
			s := bandedSpec(7, b, kept)
			s.NoiseMultiplier = 1 << 25 // sigma is 2^31.6
			_, err := Release(x, s, NewSampler(drbg(1)))
			return err
		},
		"a lattice too fine": func(x []int64) error {
			s := bandedSpec(7, b, kept)
			s.NoiseMultiplier = 1 << 27
			_, err := Release(x, s, NewSampler(drbg(1)))
			return err
		},
	} {
		next(kept, 7, 51) // a row that failed is not the one drawn before it
		if name == "no state" {
			kept.next = nil
		}
		x := make([]int64, dim)
		x[0] = 5
		if release(x) == nil || x[0] != 0 {
			t.Errorf("%s: released %d", name, x[0])
		}
		kept.Keep()
		if still, _ := kept.AppendBinary(nil); !bytes.Equal(still, written) {
			t.Errorf("%s: the state changed", name)
		}
	}
	for _, bad := range [][]byte{written[:len(written)-1], make([]byte, 4*4*dim), make([]byte, 4)} {
		if err := again.UnmarshalBinary(bad); !errors.Is(err, ErrCorrelated) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	for _, bad := range []Banded{{0, 4, 4, 1}, {MaxBand + 1, MaxBand + 1, 4, 1}, {1, 1, 0, 1}, {1, 1, 8, 1}} {
		if _, err := NewCorrelated(bad, 3); !errors.Is(err, ErrCorrelated) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := NewCorrelated(b, 0); !errors.Is(err, ErrCorrelated) {
		t.Errorf("no coordinates: %v", err)
	}
}

func FuzzCorrelated(f *testing.F) {
	f.Add(uint8(3), []byte{0, 0, 0, 1, 255, 255, 255, 254})
	f.Fuzz(func(t *testing.T, band uint8, b []byte) {
		c, err := NewCorrelated(Banded{max(1, uint32(band)), max(1, uint32(band)), 4, 1}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if c.UnmarshalBinary(b) != nil {
			return
		}
		if back, err := c.AppendBinary(nil); err != nil || !bytes.Equal(back, b) || c.Rows() >= max(1, int(band)) {
			t.Fatalf("%x was %x, %v", back, b, err)
		}
	})
}
