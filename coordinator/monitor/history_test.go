package monitor

import "testing"

// TestParseRecord: a remembered round is read back as it was, and one of a program that
// called its number the attempt and the version that it was to make its round.
func TestParseRecord(t *testing.T) {
	for text, want := range map[string]RoundID{
		`{"round":5,"version":3,"rank":2,"clip_norm":1,"released":true}`:  {Round: 5, Version: 3, Rank: 2, ClipNorm: 1},
		`{"round":3,"attempt":5,"rank":2,"clip_norm":1,"released":true}`:  {Round: 5, Version: 3, Rank: 2, ClipNorm: 1},
		`{"round":3,"attempt":4,"rank":2,"clip_norm":1,"released":false}`: {Round: 4, Version: 2, Rank: 2, ClipNorm: 1},
	} {
		if got, err := parseRecord([]byte(text)); err != nil || got.RoundID != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got.RoundID, err, want)
		}
	}
	if got, err := parseRecord([]byte(`{"round":5,"so_far":{"turns":{"up":3}}}`)); err != nil || got.soFar.Turns.Up != 3 {
		t.Errorf("what was moved so far is %+v, %v", got.soFar, err)
	}
	if _, err := parseRecord([]byte(`{"round":`)); err == nil {
		t.Error("half a line is a record")
	}
}
