package task

// TagF1 is the harmonic mean of precision and recall over all words that have a label,
// or are said to have one, other than background (token F1, micro-averaged); background
// -1: every label counts. It is 1 where there is none to find and none is said.
func TagF1(predicted, truths []int, background int) float64 {
	hits, said, were := 0, 0, 0
	for i, p := range predicted {
		if p != background {
			said++
		}
		if truths[i] != background {
			were++
		}
		if p == truths[i] && p != background {
			hits++
		}
	}
	if said+were == 0 {
		return 1
	}
	return 2 * float64(hits) / float64(said+were)
}
