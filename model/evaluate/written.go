package evaluate

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode"
)

// RougeL is the F1 of the longest common subsequence of two texts' words (ROUGE-L, Lin 2004) in
// lower case, words being runs of letters and digits; 0 if a text has no words.
func RougeL(said, right string) float64 {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	x, y := words(said), words(right)
	row := make([]int, len(y)+1) // longest of x so far and y up to each word
	for _, a := range x {
		diagonal := 0
		for j, b := range y {
			above := row[j+1]
			switch {
			case a == b:
				row[j+1] = diagonal + 1
			default:
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	if n := row[len(y)]; n > 0 {
		return 2 * float64(n) / float64(len(x)+len(y))
	}
	return 0
}

// SameJSON is 1 if both texts are JSON of one value (such as a function call), whatever the order
// of keys and the space between, else 0.
func SameJSON(said, right string) float64 {
	parse := func(s string) (v any, ok bool) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if d.Decode(&v) != nil || d.More() {
			return nil, false
		}
		return v, true
	}
	x, isX := parse(said)
	y, isY := parse(right)
	if isX && isY && reflect.DeepEqual(x, y) {
		return 1
	}
	return 0
}

// ExactText is 1 if two texts are equal, ignoring outer space, else 0.
func ExactText(said, right string) float64 {
	if strings.TrimSpace(said) == strings.TrimSpace(right) {
		return 1
	}
	return 0
}
