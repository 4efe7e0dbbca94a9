package operator

import (
	"fmt"
	"testing"

	"github.com/starling-fl/starling/internal/app/demo"
)

// The recorded figure of the head alone is quoted for the settings that it was
// measured under, and for no others.
func TestHeadOnlyIsOfItsSettings(t *testing.T) {
	run := func(args ...string) *demo.HeadOnlyRecord {
		t.Helper()
		var f demoFlags
		fl := demoFlagSet(&f)
		if err := fl.Parse(args); err != nil {
			t.Fatal(err)
		}
		r, err := f.HeadOnlyOf(fmt.Sprintf("starling-text/1 seed %d", f.Seed))
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
