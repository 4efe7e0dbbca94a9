package nightly

import "testing"

func TestFew(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 6} {
		t.Setenv(Variable, value)
		few, taken := Few{Each: 2}, 0
		for _, class := range []string{"a", "a", "b", "a", "a", "a"} {
			if few.Take(class) {
				taken++
			}
		}
		if taken != want || few.Classes() != 2 {
			t.Errorf("%s=%q: %d of 6 cases in %d classes, want %d in 2", Variable, value, taken, few.Classes(), want)
		}
		t.Run("only", func(t *testing.T) {
			Only(t, "nothing")
			if value == "" {
				t.Error("it runs by day")
			}
		})
	}
}
