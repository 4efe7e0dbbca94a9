package membership

import "math"

// Logit is the statistic of the likelihood ratio: the logarithm of the odds of the right answer,
// which is closer to normally distributed than the loss (Carlini et al. 2022, section 4.C). loss is
// the cross-entropy of the right answer, in nats.
func Logit(loss float64) float64 {
	const least, most = 1e-9, 50
	loss = min(max(loss, least), most)
	return -loss - math.Log(-math.Expm1(-loss))
}

// The likelihood ratio's two variants.
const (
	Online  = "online"  // shadows with the unit and without it
	Offline = "offline" // shadows without it
)

// variant is the better of the two that every unit's shadows allow; "" where neither.
func variant(units []Unit) string {
	best, spare := Online, [2]int{}
	for _, u := range units {
		if len(u.Out) == 0 {
			return ""
		}
		if len(u.In) == 0 {
			best = Offline
		}
		spare[0] += len(u.Out) - 1
		spare[1] += max(len(u.In)-1, 0)
	}
	switch {
	case spare[0] == 0:
		return ""
	case spare[1] == 0:
		return Offline
	}
	return best
}

// ratios are the units' scores: the logarithm of how much likelier the attacked model's statistic
// is with the unit among its members than without, each a normal distribution about the mean of
// its shadows. With few shadows their spread is that of all units together (Carlini et al. 2022,
// section 6.C). Offline it is how many spreads above the mean without the unit.
func ratios(units []Unit, how string) []float64 {
	spread := func(of func(Unit) []float64) float64 {
		sum, n := 0.0, 0.0
		for _, u := range units {
			x := of(u)
			m := mean(x)
			for _, v := range x {
				sum += (v - m) * (v - m)
			}
			n += float64(max(len(x)-1, 0))
		}
		return max(math.Sqrt(sum/n), 1e-9)
	}
	out := spread(func(u Unit) []float64 { return u.Out })
	in := 0.0
	if how == Online {
		in = spread(func(u Unit) []float64 { return u.In })
	}
	scores := make([]float64, len(units))
	for i, u := range units {
		without := (u.Target - mean(u.Out)) / out
		if scores[i] = without; how == Online {
			with := (u.Target - mean(u.In)) / in
			scores[i] = without*without/2 - with*with/2 + math.Log(out/in)
		}
	}
	return scores
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Scores returns how likely each unit was a member, by the strongest attack that needs to know no
// unit's membership: the likelihood ratio if there are shadows, else the loss compared with the
// base's.
func Scores(units []Unit) (name string, scores []float64) {
	if how := variant(units); how != "" {
		return "LiRA, " + how, ratios(units, how)
	}
	return "loss less the base's", lowest(DeltaLoss)(units)
}
