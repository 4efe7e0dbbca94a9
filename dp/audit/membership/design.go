package membership

import "math/rand/v2"

// Design draws who is a member of a run that is to be attacked, and of shadow runs beside it. In
// the attacked run each is a member by a fair coin of its own, so that its members are canaries
// that bound epsilon (audit.Documents). In each shadow run a random half are members, so that
// everybody has models with and without them (Carlini et al. 2022, section 4.B). The two are
// independent: how often somebody is in the shadows says nothing about the run.
func Design(people, shadows int, seed uint64) (target []bool, in [][]bool) {
	rng := rand.New(rand.NewPCG(seed, 0x64657369))
	target = make([]bool, people)
	in = make([][]bool, shadows)
	for k := range in {
		in[k] = make([]bool, people)
	}
	for i := range target {
		target[i] = rng.IntN(2) == 1
	}
	for i := range target {
		n := shadows / 2
		if shadows%2 == 1 {
			n += rng.IntN(2)
		}
		for _, k := range rng.Perm(shadows)[:n] {
			in[k][i] = true
		}
	}
	return target, in
}
