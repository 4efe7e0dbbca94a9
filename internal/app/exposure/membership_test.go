package exposure

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp/audit/membership"
)

// A set that too few providers are in has no empty table, and where no set was attacked nothing is claimed.
func TestMembershipWithoutAttacks(t *testing.T) {
	var units []membership.Unit
	for i := range 24 {
		u := membership.Unit{Name: string(rune('a' + i)), Member: i%2 == 0, Questions: 3}
		for m := range u.Means {
			u.Means[m] = float64(i) / 24
		}
		units = append(units, u)
	}
	for _, c := range []struct {
		questions        []int
		claims, attacked bool
	}{{[]int{5, 10}, false, false}, {[]int{0, 5}, true, true}} {
		found, err := membership.Run(units, membership.Config{Seeds: 5, Questions: c.questions})
		if err != nil {
			t.Fatal(err)
		}
		var b, page strings.Builder
		d := MembershipReport{Audited: &Audited{By: "provider"}, Result: found}.Dossier()
		if err := d.Text(&b); err != nil {
			t.Fatal(err)
		}
		if err := d.HTML(&page); err != nil {
			t.Fatal(err)
		}
		tables := 0
		if c.attacked {
			tables = 2 // and what each attack knows
		}
		if n := strings.Count(page.String(), "<table"); n != tables || strings.Count(b.String(), "balanced") > 1 {
			t.Errorf("%v: %d tables\n%s", c.questions, n, &b)
		}
		if claimed := !strings.Contains(b.String(), "no attack was made"); claimed != c.claims || strings.Contains(b.String(), "No attack tells members") && !c.claims {
			t.Errorf("%v: claims %v\n%s", c.questions, claimed, &b)
		}
		if !strings.Contains(b.String(), "Too few providers have so many questions: nothing was attacked, want at least 10 members and 10 others.") {
			t.Errorf("%v: does not say why\n%s", c.questions, &b)
		}
	}
}
