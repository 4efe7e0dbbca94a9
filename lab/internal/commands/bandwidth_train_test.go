//go:build !race

// GoMLX's Go backend does not run under the race detector's pointer checks.

package commands

import "testing"

// TestBandwidthTrains measures updates that were really trained.
func TestBandwidthTrains(t *testing.T) {
	r := runBandwidthTest(t, "--train", "--ranks", "2", "--cohort", "3", "--shard", "3", "--schemes", "masked:int4,clear:nf4dq", "--codecs", "none")
	if len(r.Rows) != 2 || r.Rows[0].Rank != 2 || r.Rows[0].Params != r.Rows[1].Params || r.Rows[0].Params < 100 {
		t.Fatalf("%+v", r.Rows)
	}
	for _, x := range r.Rows {
		if x.RelativeMSE <= 0 || x.RelativeMSE > 0.2 {
			t.Errorf("%s: error %v", x.Scheme, x.RelativeMSE)
		}
	}
}
