package operator

import "testing"

// The recorded figure of the head alone is quoted for the settings that it was
// measured under, and for no others.
func TestHeadOnlyIsOfItsSettings(t *testing.T) {
	run := func(args ...string) *headOnlyRecord {
		t.Helper()
		var f demoFlags
		fl := demoFlagSet(&f)
		if err := fl.Parse(args); err != nil {
			t.Fatal(err)
		}
		r, err := findHeadOnly(generatedTask("starling-text/1", f.seed), f.settings())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(); r == nil || r.Accuracy < 0.5 {
		t.Errorf("the defaults have %+v", r)
	}
	for _, args := range []string{"--rounds=5", "--clients=8", "--epsilon=8", "--vanish=0", "--privacy-unit=provider", "--adaptive-clip", "--base=x", "--seed=2"} {
		if r := run(args); r != nil {
			t.Errorf("%s has a figure that was measured without it", args)
		}
	}
}
