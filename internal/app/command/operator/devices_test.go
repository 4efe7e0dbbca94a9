package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
)

func TestDeviceLine(t *testing.T) {
	d := store.Device{Identity: strings.Repeat("ab", 32), Enrolled: time.Unix(1e9, 0).UTC(), Seen: time.Unix(0, 0).UTC(), Strikes: 2}
	if got, want := deviceLine(d), "abababababababab\t2001-09-09\tforgotten\t0\t2\tno\tno"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.Seen, d.Excluded = time.Unix(1e9+3600, 0).UTC(), "broke in\x1b[2J"
	if got, want := deviceLine(d), "abababababababab\t2001-09-09\t2001-09-09 02:46:40\t0\t2\t"+`"broke in\x1b[2J"`+"\tno"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.Excluded, d.Declined, d.DeclinedRound, d.DeclinedRounds = "", 308, 12, 3
	if got := deviceLine(d); !strings.HasSuffix(got, "\tno\tmemory (3 rounds, last in 12)") {
		t.Errorf("%q", got)
	}
	if d.Declined = 399; !strings.HasSuffix(deviceLine(d), "\tno\tno") { // of no limit that this program knows
		t.Errorf("%q", deviceLine(d))
	}
}
