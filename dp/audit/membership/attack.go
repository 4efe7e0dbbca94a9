package membership

import (
	"math"
	"slices"

	"github.com/starling-fl/starling/dp/audit/forest"
	"github.com/starling-fl/starling/dp/audit/kmeans"
)

// verdicts are an attack's word on each of some units, and the score behind it: higher is
// likelier a member.
type verdicts struct {
	said  []bool
	score []float64
}

// An attack tells members among some units; known are others whose membership it is told.
type attack struct {
	Name      string
	Knowledge string
	Source    string
	metrics   []Metric
	control   bool
	permuted  bool // membership is drawn at random: a control
	judge     func(known, units []Unit, seed uint64) (verdicts, error)
}

// What attacks know.
const (
	knowsNothing = "answers of the released model"
	knowsSome    = "some providers' membership, answers and probabilities of the released model and of the base"
	knowsLabels  = "some providers' membership, answers of the released model"
	knowsShadows = "models of the attacker's own, trained as the released one is on documents of the providers"
)

const (
	tito = "Tito et al. 2023"
	// mostVotes: three classifiers vote.
	mostVotes = 3
)

// attacks are all that the units' metrics allow.
func attacks(units []Unit) (all []attack) {
	add := func(a attack) {
		if has(units, a.metrics) {
			all = append(all, a)
		}
	}
	g123 := slices.Concat(G1, G2, G3)
	add(attack{Name: "AZK", Knowledge: knowsNothing, Source: tito, metrics: G1, judge: azk(G1)})
	add(attack{Name: "AZK, G1+G4", Knowledge: knowsNothing, Source: tito, metrics: slices.Concat(G1, G4), judge: azk(slices.Concat(G1, G4))})
	add(attack{Name: "forest, G1", Knowledge: knowsLabels, Source: tito, metrics: G1, judge: apk(G1)})
	add(attack{Name: "APK", Knowledge: knowsSome, Source: tito, metrics: g123, judge: apk(g123)})
	add(attack{Name: "APK, G1+G2+G3+G4", Knowledge: knowsSome, Source: tito, metrics: slices.Concat(g123, G4), judge: apk(slices.Concat(g123, G4))})
	add(attack{Name: "AZK+CLS1+CLS2", Knowledge: knowsNothing, Source: tito, metrics: slices.Concat(G1, G4), judge: voted(azk(G1))})
	add(attack{Name: "APK+CLS1+CLS2", Knowledge: knowsSome, Source: tito, metrics: slices.Concat(g123, G4), judge: voted(apk(g123))})
	add(attack{Name: "loss", Knowledge: knowsSome, Source: "Yeom et al. 2018", metrics: []Metric{Loss}, judge: threshold(lowest(Loss))})
	add(attack{Name: "loss less the base's", Knowledge: knowsSome, Source: "Watson et al. 2022", metrics: []Metric{DeltaLoss}, judge: threshold(lowest(DeltaLoss))})
	if how := variant(units); how != "" {
		all = append(all, attack{Name: "LiRA, " + how, Knowledge: knowsShadows, Source: "Carlini et al. 2022",
			judge: threshold(func(u []Unit) []float64 { return ratios(u, how) })})
	}
	add(attack{Name: "control: the base alone", Knowledge: knowsSome, metrics: ofBase, control: true, judge: apk(ofBase)})
	add(attack{Name: "control: members drawn at random", Knowledge: knowsSome, metrics: g123, control: true, permuted: true, judge: apk(g123)})
	return all
}

// azk clusters the units; the cluster whose first metric is higher on average are the members
// (section 5.2.3, without knowledge), by the next one where both have the same.
func azk(metrics []Metric) func(known, units []Unit, seed uint64) (verdicts, error) {
	return func(_, units []Unit, seed uint64) (v verdicts, err error) {
		points := rows(units, metrics)
		c, err := kmeans.Cluster(points, seed)
		if err != nil {
			return v, err
		}
		in := 0
		if slices.Compare(c.Centres[1], c.Centres[0]) > 0 {
			in = 1
		}
		for i, p := range points {
			v.said = append(v.said, differs(c) && c.Of[i] == in)
			v.score = append(v.score, kmeans.Distance(p, c.Centres[1-in])-kmeans.Distance(p, c.Centres[in]))
		}
		return v, nil
	}
}

// differs reports whether two clusters have two centres; points that are all one are nobody's.
func differs(c kmeans.Clusters) bool { return !slices.Equal(c.Centres[0], c.Centres[1]) }

// apk is a forest that has seen the known (section 5.2.3, with partial knowledge).
func apk(metrics []Metric) func(known, units []Unit, seed uint64) (verdicts, error) {
	return func(known, units []Unit, seed uint64) (v verdicts, err error) {
		f, err := forest.Grow(rows(known, metrics), membership(known), forest.Config{Seed: seed})
		if err != nil {
			return v, err
		}
		for _, row := range rows(units, metrics) {
			p := f.Probability(row)
			v.score, v.said = append(v.score, p), append(v.said, p > 0.5)
		}
		return v, nil
	}
}

// voted adds the memorization test's two classifiers to an attack, and takes the majority's
// word: CLS1 says member where an answer that was removed is told at all, CLS2 where what is
// said without a question stays alike (section 5.2.3). Scores are votes, and the attack's own
// order among equals.
func voted(of func(known, units []Unit, seed uint64) (verdicts, error)) func(known, units []Unit, seed uint64) (verdicts, error) {
	return func(known, units []Unit, seed uint64) (verdicts, error) {
		own, err := of(known, units, seed)
		if err != nil {
			return own, err
		}
		second, err := azk([]Metric{DeltaMemoryNLS})(nil, units, seed)
		if err != nil {
			return own, err
		}
		most := 1e-300
		for _, x := range own.score {
			most = max(most, math.Abs(x))
		}
		var v verdicts
		for i, u := range units {
			votes := 0
			for _, yes := range []bool{own.said[i], u.Means[MemoryNLS] > 0, second.said[i]} {
				if yes {
					votes++
				}
			}
			v.said = append(v.said, 2*votes > mostVotes)
			v.score = append(v.score, float64(votes)+own.score[i]/most/4)
		}
		return v, nil
	}
}

// lowest scores a unit by how low a metric is.
func lowest(m Metric) func([]Unit) []float64 {
	return func(units []Unit) []float64 {
		var out []float64
		for _, row := range rows(units, []Metric{m}) {
			out = append(out, -row[0])
		}
		return out
	}
}

// threshold says member above the score that parts the known best.
func threshold(score func([]Unit) []float64) func(known, units []Unit, seed uint64) (verdicts, error) {
	return func(known, units []Unit, _ uint64) (v verdicts, err error) {
		both := score(slices.Concat(known, units)) // what is pooled is pooled over all
		at := parting(both[:len(known)], membership(known))
		v.score = both[len(known):]
		for _, x := range v.score {
			v.said = append(v.said, x > at)
		}
		return v, nil
	}
}

// parting is a score above which most of the members and few of the others lie, counted alike.
func parting(score []float64, member []bool) float64 {
	s := ranked(make([]int, len(score)), member, score, member)
	sorted := slices.Clone(score)
	slices.SortFunc(sorted, func(a, b float64) int { return -compare(a, b) })
	best, at, hits := 0, math.Inf(1), 0
	for k := range sorted {
		if s.member[k] {
			hits++
		} else {
			hits--
		}
		last := k+1 == len(sorted)
		if hits > best && (last || sorted[k+1] < sorted[k]) {
			best = hits
			if at = math.Nextafter(sorted[k], math.Inf(-1)); !last {
				at = (sorted[k] + sorted[k+1]) / 2
			}
		}
	}
	return at
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func membership(units []Unit) []bool {
	out := make([]bool, len(units))
	for i, u := range units {
		out[i] = u.Member
	}
	return out
}
