package accounting

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
)

type golden map[string]string

func (g golden) num(t *testing.T, key string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(g[key], 64)
	if err != nil {
		t.Fatalf("golden %s: %v", key, err)
	}
	return f
}

func readGoldens(t *testing.T) []golden {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "dp_accounting.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	for _, r := range rows[1:] {
		g := golden{}
		for i, k := range rows[0] {
			g[k] = r[i]
		}
		out = append(out, g)
	}
	return out
}

func TestGoldenEpsilon(t *testing.T) {
	for _, g := range readGoldens(t) {
		if g["kind"] != "eps" {
			continue
		}
		q, z, delta := g.num(t, "q"), g.num(t, "sigma"), g.num(t, "delta")
		rounds := int(g.num(t, "T"))
		start := time.Now()
		got, err := Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, rounds)}, delta, dp.Tight)
		took := time.Since(start)
		if err != nil {
			t.Errorf("%v: %v", g, err)
			continue
		}
		lo, hi := g.num(t, "eps_tight_lo"), g.num(t, "eps_tight_hi")
		t.Logf("%-14s q=%-8.3g z=%-6.4g T=%-6d d=%-8.3g  up/hi-1=%9.2e gap=%9.2e rdp/real-1=%9.2e  %v",
			g["tag"], q, z, rounds, delta, got.Epsilon/hi-1, (got.Epsilon-got.EpsilonLower)/got.Epsilon, got.RDPEpsilon/g.num(t, "eps_rdp_real_orders")-1, took.Round(time.Microsecond*100))
		if got.Epsilon < lo || got.Epsilon > hi*(1+1e-4) || got.EpsilonLower > hi || math.IsNaN(got.Epsilon) {
			t.Errorf("q=%v z=%v T=%d delta=%v: [%v, %v], golden [%v, %v]", q, z, rounds, delta, got.EpsilonLower, got.Epsilon, lo, hi)
		}
	}
}

func TestGoldenNoise(t *testing.T) {
	for _, g := range readGoldens(t) {
		if g["kind"] != "sigma" {
			continue
		}
		q, delta, eps := g.num(t, "q"), g.num(t, "delta"), g.num(t, "eps_target")
		rounds := int(g.num(t, "T"))
		if want := g.num(t, "sigma_tight"); q < 1e-3 {
			// Heavy tails make a whole calibration long: bracket the golden instead.
			for _, side := range []float64{-1e-4, 1e-4} {
				e, err := epsilonOf(dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: want * (1 + side)}, rounds), delta, dp.Tight)
				if err != nil || e > eps == (side > 0) {
					t.Errorf("q=%v T=%d delta=%v: epsilon %v at golden z %v %+v, target %v (%v)", q, rounds, delta, e, want, side, eps, err)
				}
			}
			continue
		}
		for _, c := range []struct {
			acct dp.Accountant
			want float64
			tol  float64
		}{{dp.Tight, g.num(t, "sigma_tight"), 1e-4}, {dp.RDP, g.num(t, "sigma_rdp_go"), 1e-6}} {
			start := time.Now()
			z, err := CalibrateNoise(eps, delta, q, rounds, c.acct)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s q=%v T=%d: %v, golden %v (%+.2e) %v", g["tag"], c.acct, q, rounds, z, c.want, z/c.want-1, time.Since(start).Round(time.Millisecond))
			// The Rényi goldens were made with a list of orders: every order can only help.
			if z/c.want-1 > c.tol || c.acct == dp.Tight && z/c.want-1 < -c.tol {
				t.Errorf("q=%v T=%d delta=%v epsilon=%v %s: z %v, golden %v", q, rounds, delta, eps, c.acct, z, c.want)
			}
		}
	}
}
