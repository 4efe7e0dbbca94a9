package task

import "strings"

// Edits are the fewest edits from the right text to the predicted one.
type Edits struct {
	Substitutions int // said in place of another
	Deletions     int // right, and not said
	Insertions    int // said, and not right
	Of            int // words, or characters, that are right
}

// WordEdits compares two texts word by word, words being what is between white space.
func WordEdits(said, right string) Edits { return edits(strings.Fields(said), strings.Fields(right)) }

// CharacterEdits compares two texts by code points, spaces between words included.
func CharacterEdits(said, right string) Edits { return edits([]rune(said), []rune(right)) }

// Add returns the edits of two texts together.
func (e Edits) Add(o Edits) Edits {
	return Edits{e.Substitutions + o.Substitutions, e.Deletions + o.Deletions, e.Insertions + o.Insertions, e.Of + o.Of}
}

// Rate is (S + D + I) / N: the word error rate of words, the character error rate of characters. 0
// is best, and it is above 1 if there are more errors than right words. If nothing is right, it is
// the number of words predicted.
func (e Edits) Rate() float64 {
	return float64(e.Substitutions+e.Deletions+e.Insertions) / float64(max(1, e.Of))
}

// edits are the fewest in all; of as many, those with the fewest substitutions come last to
// first as Levenshtein's table is walked back.
func edits[T comparable](said, right []T) Edits {
	// A row of Levenshtein's table, with how its best ways are made up.
	row := make([]Edits, len(said)+1)
	for j := range row {
		row[j].Insertions = j
	}
	for i, r := range right {
		diagonal := row[0]
		row[0] = Edits{Deletions: i + 1}
		for j, s := range said {
			swap, drop, add := diagonal, row[j+1], row[j]
			if s != r {
				swap.Substitutions++
			}
			drop.Deletions++
			add.Insertions++
			diagonal = row[j+1]
			row[j+1] = swap
			for _, other := range []Edits{drop, add} {
				if other.all() < row[j+1].all() {
					row[j+1] = other
				}
			}
		}
	}
	out := row[len(said)]
	out.Of = len(right)
	return out
}

func (e Edits) all() int { return e.Substitutions + e.Deletions + e.Insertions }
