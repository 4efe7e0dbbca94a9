package simulate

import (
	"crypto/rand"
	"testing"

	"github.com/starling-fl/starling/job"
)

// Nobody is drawn again before the separation is over, and everybody may be after it.
func TestCohortsAreApart(t *testing.T) {
	for _, c := range []struct{ n, size, separation int }{{20, 3, 6}, {20, 4, 5}, {5, 5, 1}, {7, 1, 7}} {
		r := &Run{cfg: Config{Population: make(Each, c.n)}}
		r.job.Cohort.Size, r.job.Privacy.Mechanism, r.job.Privacy.Separation = c.size, job.MechanismBanded, c.separation
		last := map[int]int{}
		for row := 1; row <= 200; row++ {
			who, cert, err := r.apart()(1, rand.Reader)
			if err != nil || len(who) != c.size || cert.AccountedRate() != 1 {
				t.Fatalf("%+v: row %d draws %v, %+v, %v", c, row, who, cert, err)
			}
			for _, member := range who {
				if was, drawn := last[member]; drawn && row-was < c.separation || member < 0 || member >= c.n {
					t.Fatalf("%+v: client %d is in rounds %d and %d", c, member, was, row)
				}
				last[member] = row
			}
			r.rest(who)
		}
		if len(last) != c.n {
			t.Errorf("%+v: %d clients were ever drawn", c, len(last))
		}
	}
}
