package evaluate

import "strings"

// normal is how answers are compared: without case and outer space.
func normal(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// ExactMatch is 1 if the answer is one of the right ones, ignoring case and outer space, else 0. No
// answer, or the word none, is never right.
func ExactMatch(answer string, truths []string) float64 {
	for _, t := range truths {
		if a := normal(answer); a != "" && a != "none" && a == normal(t) {
			return 1
		}
	}
	return 0
}

// TokenF1 is the harmonic mean of precision and recall of the answer's words, for the right answer
// for which it is highest (SQuAD, Rajpurkar et al. 2016, but with punctuation and articles, which
// matter in documents).
func TokenF1(answer string, truths []string) float64 {
	best := 0.0
	said := strings.Fields(normal(answer))
	for _, t := range truths {
		left := map[string]int{}
		words := strings.Fields(normal(t))
		for _, w := range words {
			left[w]++
		}
		common := 0
		for _, w := range said {
			if left[w] > 0 {
				left[w]--
				common++
			}
		}
		if common > 0 {
			best = max(best, 2*float64(common)/float64(len(said)+len(words)))
		}
	}
	return best
}

// anlsThreshold is the similarity below which an answer counts as another.
const anlsThreshold = 0.5

// ANLS is the normalized Levenshtein similarity to the nearest right answer, or 0 if that is below
// a half (Biten et al. 2019). It counts as the privacy-aware document question answering
// competition does: by code points, and 0 for no answer and for the word none.
func ANLS(answer string, truths []string) float64 {
	said := []rune(normal(answer))
	if len(said) == 0 || string(said) == "none" {
		return 0
	}
	best := 0.0
	for _, t := range truths {
		truth := []rune(normal(t))
		similarity := 1 - float64(levenshtein(said, truth))/float64(max(len(said), len(truth)))
		best = max(best, similarity)
	}
	if best < anlsThreshold {
		return 0
	}
	return best
}

// levenshtein is the least number of insertions, deletions and substitutions that make
// one of the other.
func levenshtein(x, y []rune) int {
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, a := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, b := range y {
			cost := diagonal
			if a != b {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}
