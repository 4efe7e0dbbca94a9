package dataset

import (
	"math/rand/v2"
	"strings"
)

// confusions are what optical character recognition takes for each other.
var confusions = map[byte]string{
	'0': "o", 'o': "0", '1': "l", 'l': "1", '5': "s", 's': "5", '8': "b", 'b': "8",
	'e': "c", 'c': "e", 'i': "l", 'm': "rn", 'n': "ri", 'u': "v", 'v': "u", 'g': "q", 'h': "b", 't': "f",
	'O': "0", 'I': "1", 'S': "5", 'B': "8", 'E': "F", 'M': "N", 'Z': "2", 'G': "6",
}

// scan harms each word with the given chance, the way a scanner does: one
// character misread, dropped, or a space put into the word.
func scan(rng *rand.Rand, text string, chance float64) string {
	words := strings.Fields(text)
	for i, w := range words {
		if len(w) < 2 || rng.Float64() >= chance {
			continue
		}
		at := rng.IntN(len(w))
		switch rng.IntN(4) {
		case 0: // dropped
			words[i] = w[:at] + w[at+1:]
		case 1: // split
			words[i] = w[:at] + " " + w[at:]
		default: // misread, where the character has a double
			if to, ok := confusions[w[at]]; ok {
				words[i] = w[:at] + to + w[at+1:]
			}
		}
	}
	return strings.Join(words, " ")
}
