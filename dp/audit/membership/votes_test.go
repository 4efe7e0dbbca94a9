package membership

import (
	"math"
	"testing"
)

// Where an attack and the memorization test disagree the stability of what is said without a
// question decides, towards members where it is higher.
func TestVotes(t *testing.T) {
	var units []Unit
	for i := range 8 {
		u := Unit{Name: string(rune('a' + i))}
		u.Means[MemoryNLS] = float64(i >> 1 & 1)
		u.Means[DeltaMemoryNLS] = 0.2 + 0.6*float64(i&1) + 0.01*float64(i)
		units = append(units, u)
	}
	own := func(_, units []Unit, _ uint64) (v verdicts, err error) {
		for i := range units {
			v.said, v.score = append(v.said, i >= 4), append(v.score, float64(i))
		}
		return v, nil
	}
	v, err := voted(own)(nil, units, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range units {
		votes := i>>2&1 + i>>1&1 + i&1
		if v.said[i] != (votes >= 2) || math.Floor(v.score[i]) != float64(votes) {
			t.Errorf("unit %d has %d votes: said %v, score %v", i, votes, v.said[i], v.score[i])
		}
	}
}

// One of a hundred others may be accused, and no second.
func TestFalsePositives(t *testing.T) {
	var member []bool
	var score []float64
	for i := range 100 {
		member, score = append(member, false), append(score, float64(i))
	}
	for _, x := range []float64{200, 98.5, 98.5, 97.5} {
		member, score = append(member, true), append(score, x)
	}
	at := make([]int, len(member))
	if f := ranked(at, member, score, member).figures(nil); f.TPR != 0.75 {
		t.Errorf("%v of the members are found while one of 100 others is accused, want .75", f.TPR)
	}
}

// Probabilities are corrected step by step, attacks and controls apart, over all sets.
func TestCorrection(t *testing.T) {
	r := Result{Claims: true, Sets: []Set{
		{Rows: []Row{{Attack: "a", Chance: 0.04}, {Attack: "b", Chance: 0.01}, {Attack: "control", Control: true, Chance: 0.04}}},
		{Rows: []Row{{Attack: "a", Chance: 0.02, Figures: Figures{AUC: 0.9}}}}}}
	r.judge()
	for name, x := range map[string][2]float64{"largest": {r.Sets[0].Rows[0].Chance, 0.04}, "least": {r.Sets[0].Rows[1].Chance, 0.03},
		"control": {r.Sets[0].Rows[2].Chance, 0.04}, "middle": {r.Sets[1].Rows[0].Chance, 0.04}} {
		if math.Abs(x[0]-x[1]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if !r.Distinguished || !r.Suspect || r.Strongest != "a" {
		t.Errorf("%+v", r)
	}
}
