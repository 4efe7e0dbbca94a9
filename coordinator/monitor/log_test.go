package monitor

import "testing"

// TestOccurrences: the last lines are kept, each is told once, and long ones are cut.
func TestOccurrences(t *testing.T) {
	var o occurrences
	told := 0
	for i := range maxOccurrences + 50 {
		o.add(Occurrence{What: string(rune('a' + i%26))})
		if i%7 == 0 {
			lines, n := o.after(told)
			if n != i+1 || len(lines) != min(n-told, maxOccurrences) {
				t.Fatalf("after %d of %d: %d lines, %d", told, i+1, len(lines), n)
			}
			told = n
		}
	}
	lines, _ := o.after(0)
	if len(lines) != maxOccurrences || lines[len(lines)-1].What != string(rune('a'+(maxOccurrences+49)%26)) {
		t.Errorf("%d lines kept", len(lines))
	}
	if lines, _ := o.after(maxOccurrences + 50); len(lines) != 0 {
		t.Errorf("%d lines again", len(lines))
	}
}
