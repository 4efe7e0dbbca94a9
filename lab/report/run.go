package report

import (
	"errors"
	"maps"
	"slices"

	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/simulate"
)

// ErrNothing is a run of which there is nothing to draw.
var ErrNothing = errors.New("report: nothing to draw: accuracy was measured at the end alone, and at one rank (every, adapter.rank_min)")

// bestOf is the best accuracy that was measured in a round, in percent.
func bestOf(r simulate.Round) (best float64, ok bool) {
	for _, a := range r.Accuracy {
		best, ok = max(best, 100*a.Accuracy), true
	}
	return best, ok
}

// Runs draws validation accuracy against the privacy that was spent, against the bytes of a
// device, and against rank: of one run, or of several that differ in the seed alone.
func Runs(records []*sweep.Record) (Plot, error) {
	type stage struct{ epsilon, bytes, accuracy []float64 }
	rounds, ranks := map[int]*stage{}, map[int][]float64{}
	for _, r := range records {
		bytes := 0.0
		add := func(number int, epsilon, accuracy float64) {
			if rounds[number] == nil {
				rounds[number] = &stage{}
			}
			s := rounds[number]
			s.epsilon, s.bytes, s.accuracy = append(s.epsilon, epsilon), append(s.bytes, bytes), append(s.accuracy, accuracy)
		}
		for _, round := range r.Curve {
			bytes += float64(round.BytesUp + round.BytesDown)
			if best, ok := bestOf(round); ok {
				add(round.Number, round.Epsilon, best)
			}
		}
		add(len(r.Curve), r.Epsilon, 100*r.Validation)
		for _, m := range r.ByRank {
			if m.Rank > 0 {
				ranks[m.Rank] = append(ranks[m.Rank], 100*m.Accuracy)
			}
		}
	}
	var epsilon, traffic, rank series
	private := true
	for _, n := range slices.Sorted(maps.Keys(rounds)) {
		s := rounds[n]
		spent := summarize(s.epsilon).Mean
		private = private && spent > 0
		epsilon.points = append(epsilon.points, over(spent, s.accuracy))
		traffic.points = append(traffic.points, over(summarize(s.bytes).Mean, s.accuracy))
	}
	rank.points = marks(ranks)
	const y = "validation accuracy, %"
	var charts []chart
	if len(rounds) > 1 {
		if private {
			charts = append(charts, chart{title: "Privacy", x: "epsilon spent", y: y, lines: true, series: []series{epsilon}})
		}
		charts = append(charts, chart{title: "Bytes", x: "bytes of one device, up and down", y: y, lines: true, series: []series{traffic}})
	}
	if len(ranks) > 1 {
		charts = append(charts, chart{title: "Rank", x: "rank", y: y, lines: true, series: []series{rank}})
	}
	if len(charts) == 0 {
		return Plot{}, ErrNothing
	}
	return figure("run", "Accuracy of a simulated deployment", "", charts...)
}
