package guarantee

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// Curve is epsilon over the rounds of one job.
type Curve struct {
	Rate, Noise float64
	Provider    float64 // rate of each provider's coin; 0: devices are protected
	Delta       float64
	Adjacency   string
	Target      float64 // a horizontal line, 0 for none
	Points      []Point
}

// Point is epsilon after so many rounds.
type Point struct {
	Rounds                     int
	Tight, Lower, RDP, Visible float64 // Tight and Lower are 0 with the rdp accountant
}

// curvePoints is about how many numbers of rounds a curve is computed at.
const curvePoints = 28

// Compute fills in the points from the first round to the last, of the rounds that planned
// makes; they are evenly spaced in the square root, along which epsilon is near a line.
func (c *Curve) Compute(rounds int, planned func(rounds int) dp.Event, acct dp.Accountant) error {
	last := 0
	for i := 1; i <= curvePoints; i++ {
		n := int(math.Ceil(float64(rounds) * math.Pow(float64(i)/curvePoints, 2)))
		if n == last {
			continue
		}
		last = n
		events := []dp.Event{planned(n)}
		g, err := accounting.Epsilon(events, c.Delta, acct) // of banded noise the same against any observer
		if err != nil {
			return err
		}
		c.Adjacency = g.Adjacency
		p := Point{Rounds: n, RDP: g.RDPEpsilon}
		if acct == dp.Tight {
			p.Tight, p.Lower = g.Epsilon, g.EpsilonLower
		}
		if c.Rate < 1 && g.Sampling != dp.SamplingVisible {
			v, err := accounting.VisibleEpsilon(events, c.Delta, acct)
			if err != nil {
				return err
			}
			p.Visible = v.Epsilon
		}
		c.Points = append(c.Points, p)
	}
	return nil
}

// WriteCSV writes a row a point.
func (c *Curve) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"rounds", "sampling_rate", "noise_multiplier", "delta", "adjacency", "epsilon", "epsilon_lower", "rdp_epsilon", "visible_epsilon", "provider_rate"}); err != nil {
		return err
	}
	num := func(x float64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, p := range c.Points {
		eps := p.Tight
		if eps == 0 {
			eps = p.RDP
		}
		row := []string{strconv.Itoa(p.Rounds), num(c.Rate), num(c.Noise), num(c.Delta), c.Adjacency, num(eps), num(p.Lower), num(p.RDP), num(p.Visible), num(c.Provider)}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
