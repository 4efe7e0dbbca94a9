package memorization

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

func TestRedact(t *testing.T) {
	for _, c := range []struct {
		text   string
		answer string
		want   string
		found  bool
	}{
		{"Invoice from Acme Corp of Berlin", "Acme Corp", "Invoice from of Berlin", true},
		{"Invoice from ACME CORP. of Berlin", "acme corp", "Invoice from of Berlin", true},
		{"visit www.acme.com or write to info@acme.com", "Acme", "visit or write to", false},         // inside other words
		{"Total 1 234.50 EUR", "1,234.50", "Total EUR", true},                                        // split by the scanner
		{"Tax no 91-0837469 and 91-0857469", "91-0837469", "Tax no and", true},                       // nearly the same number
		{"Due 12 March 2024 dated 3 March 2024 page 2", "12 March 2024", "Due dated 3 page 2", true}, // its parts elsewhere
		{"from Kennnedy Covington at once", "Kennedy Covington", "from at once", true},               // misread
		{"from Meyer & Hahn, p.c.", "Meyer Capel Hahn", "from & p.c.", false},                        // parts alone
		{"Total 5.00 EUR for 5 days", "5", "Total 5.00 EUR for days", true},                          // a short answer takes its own word alone
		{"nothing of it here", "Acme Corp", "nothing of it here", false},
		{"Ref : A B C", ":", "Ref A B C", true}, // punctuation alone
		{"größe ÄPFEL", "äpfel", "größe", true},
	} {
		got, found, left := Redact(dataset.Example{Text: c.text}, []string{c.answer})
		if got.Text != c.want || found != c.found || !left || got.Words != nil {
			t.Errorf("%q without %q: %q, found %v", c.text, c.answer, got.Text, found)
		}
	}
}

// Words keep their boxes, and a document that is nothing but the answer is none any more.
func TestRedactKeepsPlaces(t *testing.T) {
	e := dataset.Example{Words: []string{"From", "Acme", "Corp", "of", "Acme"}, Boxes: [][4]uint16{{1}, {2}, {3}, {4}, {5}}, Question: "who?"}
	got, found, left := Redact(e, []string{"Beta", "Acme Corp"})
	if !found || !left || strings.Join(got.Words, " ") != "From of" || len(got.Boxes) != 2 || got.Boxes[1][0] != 4 || got.Question != "who?" {
		t.Errorf("%+v", got)
	}
	if len(e.Words) != 5 || e.Words[1] != "Acme" {
		t.Error("the document itself was changed")
	}
	if _, _, left := Redact(dataset.Example{Text: "Acme Corp"}, []string{"acme corp"}); left {
		t.Error("something is left of nothing")
	}
}

// Whatever a file holds, no word of an answer of three letters or more is left, and nothing is
// added.
func FuzzRedact(f *testing.F) {
	f.Add("Invoice from Acme Corp", "acme corp")
	f.Add("a - b", "-")
	f.Add("İstanbul İ", "istanbul")
	f.Fuzz(func(t *testing.T, text, answer string) {
		if len(text) > 1<<10 || len(answer) > 1<<8 {
			return
		}
		got, _, _ := Redact(dataset.Example{Text: text}, []string{answer})
		if len(got.Text) > len(text) {
			t.Errorf("%q became %q", text, got.Text)
		}
		for _, part := range strings.Fields(answer) {
			want := letters(part)
			if len(want) < leastWord {
				continue
			}
			for _, w := range strings.Fields(got.Text) {
				if string(letters(w)) == string(want) {
					t.Errorf("%q is left of %q in %q", w, answer, got.Text)
				}
			}
		}
	})
}
