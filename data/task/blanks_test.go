package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// A text that spells the mask is read as if a device had masked the token: the ids of
// what stands around it, and the place. One that is longer than a row, or has more masks
// than a row has places, has a row for each mask, in whose middle it stands.
func TestBlanks(t *testing.T) {
	m := maskedTask(t, 12) // room for 10 tokens and, at 15 %, for 2 masks
	if m.Mask().Spelling != "[MASK]" || m.places != 2 {
		t.Fatalf("%+v, %d places", m.Mask(), m.places)
	}
	ids := func(text string) []int32 { return m.tok.Encode(text) }
	mask := m.Mask().ID
	one := slices.Concat(ids("taxi to the"), []int32{mask}, ids("for two"))
	long := slices.Concat(ids(strings.Repeat("one taxi to ", 9)), []int32{mask}, ids(strings.Repeat(" for two nights", 9)))
	b, rows, of := m.Blanks([]dataset.Example{
		{Text: "taxi to the[MASK] for two"}, {Text: "no mask"}, {Text: ""}, {Text: "[MASK] [MASK]"}, {Text: "[MASK][MASK] [MASK]"},
		{Text: strings.Repeat("one taxi to ", 9) + "[MASK]" + strings.Repeat(" for two nights", 9)},
		{Text: "[MASK]" + strings.Repeat(" for two nights", 9)}, {Text: strings.Repeat("one taxi to ", 9) + "[MASK]"},
	})
	if rows != 8 || len(of) != 8 || len(of[1]) != 0 || len(of[2]) != 0 {
		t.Fatalf("%d rows: %v", rows, of)
	}
	for i, want := range [][]int{0: {0}, 3: {1, 1}, 4: {2, 3, 4}, 5: {5}, 6: {6}, 7: {7}} {
		var got []int
		for _, blank := range of[i] {
			got = append(got, blank.Row)
			tokens := b.Int32(Tokens)[blank.Row*12:][:12]
			if at := b.Int32(Places)[blank.Row*m.places+blank.Place]; tokens[at] != mask {
				t.Errorf("text %d: place %d of %v is no mask", i, at, tokens)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("text %d is in the rows %v, want %v", i, got, want)
		}
	}
	row := func(r int) []int32 { return b.Int32(Tokens)[r*12:][:12] }
	framed := func(ids []int32) []int32 {
		frame := m.tok.EncodeFixed("", 12)
		out := slices.Concat(frame[:1], ids, frame[1:2], frame[2:])
		return out[:12]
	}
	if want := framed(one); !slices.Equal(row(0), want) {
		t.Errorf("%v, want %v", row(0), want)
	}
	middle := slices.Index(long, mask)
	if want := framed(long[middle-5 : middle+5]); !slices.Equal(row(5), want) {
		t.Errorf("%v, want %v", row(5), want)
	}
	for r, at := range map[int]int32{6: 1, 7: 10} { // as far as the text goes to that side
		if got := b.Int32(Places)[r*m.places]; got != at {
			t.Errorf("row %d: the mask is at %d, want %d", r, got, at)
		}
	}
	if n := b.Int32(Places)[3*m.places : 4*m.places]; n[0] != 2 { // the second of three
		t.Errorf("places %v", n)
	}
}
