package accounts

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
)

// The table has a line for each moment, what all of it costs at the last one, and no cell
// that a program for tables would compute.
func TestAccountCSV(t *testing.T) {
	eps, bits := 1.5, 72.0
	list := []jobGiven{
		{ID: "ab", JobAccount: edge.JobAccount{Name: `=HYPERLINK("x")`, Promised: 9, Contributed: 3, Delta: 1e-6,
			History: []edge.Moment{{At: 0, Rounds: 1, Up: 5, Down: 6}, {At: 86400, Rounds: 3, Up: 50, Down: 60}}}, Epsilon: &eps, Bits: &bits},
		{ID: "cd", JobAccount: edge.JobAccount{Promised: 4, Contributed: 2, Forgotten: true}},
	}
	var b bytes.Buffer
	if err := writeAccountCSV(&b, list); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%v, %v", rows, err)
	}
	for i, want := range []string{
		"job id time rounds promised bytes_sent bytes_received epsilon delta untrusted_epsilon bits_at_most",
		`'=HYPERLINK("x") ab  1 9 5 6    `,
		`'=HYPERLINK("x") ab 1970-01-02T00:00:00Z 3 9 50 60 1.5 1e-06  72`,
		" cd  2 4 0 0  0  ",
	} {
		if got := strings.Join(rows[i], " "); got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}

func TestSparkline(t *testing.T) {
	if got := sparkline([]edge.Moment{{At: 5, Rounds: 1}}); got != "" {
		t.Errorf("of one moment: %q", got)
	}
	got := []rune(sparkline([]edge.Moment{{At: 0, Rounds: 1}, {At: 1600, Rounds: 1}, {At: 3200, Rounds: 8}}))
	if len(got) < 32 || got[0] != '▂' || got[30] != '▂' || got[31] != '█' || !strings.Contains(string(got), "8 rounds from") {
		t.Errorf("%q", string(got))
	}
}
