package sweep

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
)

// Validation chooses within each place and seed, the test split has no say, and a place of
// which a trial is missing has no choice yet.
func TestSearchChoosesOnValidation(t *testing.T) {
	p, err := Parse(strings.NewReader("vary: {adapter.rank_max: [1, 2]}\nsearch: {privacy.clip_norm: [0.1, 1], server.learning_rate: [1, 2]}\nseeds: [1, 2]\ncompare: {adapter.rank_max: \"2\"}"), "")
	if err != nil || len(p.Points) != 16 {
		t.Fatal(len(p.Points), err)
	}
	x := &Index{Axes: p.Axes}
	var records []*Record
	for i, at := range p.Points {
		x.Runs = append(x.Runs, Run{fmt.Sprint(i), at.On})
		r := &Record{ID: fmt.Sprint(i), On: at.On, Settings: at.Settings, Validation: 0.5, Accuracy: 0.9}
		if at.On["privacy.clip_norm"] == "1" && (at.On["server.learning_rate"] == "2") == (at.On["seed"] == "2") {
			r.Validation, r.Accuracy = 0.8, 0.1 // the best there, and the worst where nobody looks
		}
		records = append(records, r)
	}
	chosen := Chosen(x, records)
	if len(chosen) != 4 {
		t.Fatalf("%d chosen", len(chosen))
	}
	for _, r := range chosen {
		if r.Validation != 0.8 || (r.On["server.learning_rate"] == "2") != (r.On["seed"] == "2") {
			t.Errorf("chosen: %v", r.On)
		}
	}
	table, err := Table(x, records)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	if err != nil || !strings.Contains(strings.Join(rows[0], " "), "on:adapter.rank_max search:privacy.clip_norm search:server.learning_rate on:seed chosen") {
		t.Errorf("header %v, %v", rows[0], err)
	}
	if n := strings.Count(string(table), ",true,"); n != 4 {
		t.Errorf("%d rows are chosen", n)
	}
	if left := Chosen(x, records[1:]); len(left) != 3 {
		t.Errorf("a place without all of its trials: %d chosen", len(left))
	}
	if _, err := Parse(strings.NewReader("search: {privacy.clip_norm: [0.1, 1]}\ncompare: {privacy.clip_norm: \"1\"}"), ""); err == nil {
		t.Error("what is searched is compared")
	}
}
