// Package nearest suggests the closest name for a mistyped one.
package nearest

import "strings"

// most is how many letters a name may be off.
const most = 2

// Of returns the name closest to the typed one, the first of several; empty if none is close.
func Of(typed string, names []string) string {
	best, least := "", most+1
	for _, name := range names {
		begun := best == "" && len(typed) > 2 && strings.HasPrefix(name, typed)
		if d := distance(typed, name); d < least && d < len(typed) || begun {
			best, least = name, min(d, least)
		}
	}
	return best
}

// Question is Of as the end of an error's sentence: "; did you mean NAME?", or nothing. before
// is before the name.
func Question(typed, before string, names []string) string {
	if best := Of(typed, names); best != "" {
		return "; did you mean " + before + best + "?"
	}
	return ""
}

// distance is Levenshtein's: the fewest letters to put in, take out or change.
func distance(a, b string) int {
	if len(a) > len(b)+most || len(b) > len(a)+most {
		return most + 1 // a name from anywhere may be long
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
