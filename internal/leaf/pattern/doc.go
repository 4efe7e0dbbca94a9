// Package pattern matches the regular expressions by which published tokenizers cut texts: the part
// of Oniguruma's dialect (Ruby's syntax) that they are written in, with look-ahead, look-behind and
// possessive repeats, which package regexp lacks.
//
// An expression is a stranger's program, and with look-ahead it backtracks, so it could take time
// exponential in a text. Every instruction is counted on a Meter, and the same expression over the
// same text takes the same count on every machine. That is why the language is here and not a
// library's: dlclark/regexp2 bounds an expression by a clock alone, by which two devices would cut
// one text differently.
package pattern

import "errors"

// ErrSyntax: Parse does not support the expression.
var ErrSyntax = errors.New("pattern: not understood")

// Bounds of an expression.
const (
	maxSource = 16 << 10 // bytes
	maxDepth  = 100      // of groups and classes
	maxRepeat = 1000     // of {n,m}
	maxInsts  = 20_000   // instructions
	maxParts  = 1 << 14  // of all classes: ranges, one for each other case of (?i), and tables
	maxStack  = 1 << 20  // choices that one match keeps open: 24 MiB
)

// Meter limits the steps of matching. It is not safe for concurrent use.
type Meter struct {
	// Left counts the steps left. Matching takes one for each instruction, for each character that a repeat reads
	// or a look-behind walks back, and for each 16 tables that a class compares a character with.
	Left int

	stack []choice // of the match at hand, kept for the next one
}

// Spent reports whether a match was cut short.
func (m *Meter) Spent() bool { return m.Left < 0 }
