package dp

import (
	"fmt"
	"slices"
)

// TrimmedSum adds up the sums of disjoint parts of a cohort in sum, leaving out, in every
// coordinate by itself, the trim largest and the trim smallest of them: the coordinate-wise trimmed
// mean (Yin et al. 2018), not divided; the median where an odd number of parts leaves one. A nil
// part is zeros. An attacker that controls at most trim parts moves no coordinate beyond the range
// of the others.
//
// It needs no more noise than the sum of all parts. Let one vector x be added to one
// part. In a coordinate exactly one of the values rises (or falls), by |x_j|. Sorted
// values then rise each by something, together by |x_j|, for their sum is that of the
// unsorted; so any selection of places in the order, which is what is added up here,
// moves between 0 and |x_j|. Hence |f(.. + x) - f(..)| <= |x| in every norm, and whole
// numbers stay whole: the sensitivity is sqrt(B2), as that of the sum. What it
// costs is signal, of which (k - 2 trim)/k is left. docs/privacy/proofs.md, section 5, says
// for which cohorts the parts may be cut as they are.
//
// Errors are about lengths, and a trim that is not in 0..(len(parts)-1)/2.
func TrimmedSum(sum []int64, parts [][]int64, trim int) error {
	if trim < 0 || 2*trim >= len(parts) {
		return fmt.Errorf("dp: %d parts of a sum cannot be trimmed by %d at either end", len(parts), trim)
	}
	for i, p := range parts {
		if p != nil && len(p) != len(sum) {
			return fmt.Errorf("dp: part %d of a sum has %d coordinates, the sum %d", i, len(p), len(sum))
		}
	}
	if trim == 0 {
		clear(sum)
		for _, p := range parts {
			for j, v := range p {
				sum[j] += v
			}
		}
		return nil
	}
	column := make([]int64, len(parts))
	defer clear(column)
	for j := range sum {
		for i, p := range parts {
			column[i] = 0
			if p != nil {
				column[i] = p[j]
			}
		}
		slices.Sort(column)
		sum[j] = 0
		for _, v := range column[trim : len(parts)-trim] {
			sum[j] += v
		}
	}
	return nil
}
