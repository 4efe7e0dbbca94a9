package report

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/lab/sweep"
)

// A folder of tables says of each preset which runs it has; a row that the preset has no
// point for is another's.
func TestProgressOfPresets(t *testing.T) {
	const name = "paper004-table4-small"
	_, plan, err := sweep.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	header, rows := []string{"run"}, []string{}
	for _, a := range plan.Axes {
		header = append(header, "on:"+a.Name)
	}
	header = append(header, "seed", "test_accuracy")
	row := func(on func(axis string) string) {
		cells := []string{"00"}
		for _, a := range plan.Axes {
			cells = append(cells, `"`+on(a.Name)+`"`)
		}
		rows = append(rows, strings.Join(append(cells, on("seed"), "0.5"), ","))
	}
	for _, at := range plan.Points[:3] {
		row(func(axis string) string { return at.On[axis] })
	}
	row(func(axis string) string { return "none of ours" })
	table := strings.Join(header, ",") + "\n" + strings.Join(rows, "\n") + "\n"
	all, err := Progress(fstest.MapFS{name + ".csv": {Data: []byte(table)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		made, other := 0, 0
		if p.Preset == name {
			made, other = 3, 1
		}
		if p.Made != made || p.Other != other || p.Made+len(p.Missing) != p.Planned || p.Planned == 0 {
			t.Errorf("%s: %d planned, %d made, %d missing, %d of another", p.Preset, p.Planned, p.Made, len(p.Missing), p.Other)
		}
	}
	var b bytes.Buffer
	if err := PrintProgress(&b, all); err != nil || !strings.Contains(b.String(), name+": missing ") || !strings.Contains(b.String(), fmt.Sprintf("and %d more", len(plan.Points)-3-8)) {
		t.Errorf("%s, %v", b.String(), err)
	}
	if _, err := Progress(fstest.MapFS{name + ".csv": {Data: []byte("x")}}); err == nil || !strings.Contains(err.Error(), name+".csv: is no results.csv") {
		t.Errorf("no table: %v", err)
	}
	kept, err := Progress(os.DirFS("../../docs/reproduction"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range kept {
		if p.Preset == "paper004-regimes-small" && p.Made == 0 {
			t.Errorf("the kept tables: %+v", p)
		}
	}
}
