package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is printed is the division that a simulation has: each example once, skewed where
// alpha is small, and drawn as discs.
func TestPartitionShowsTheDivision(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("text,label\n")
	for i := range 400 {
		fmt.Fprintf(&text, "text %d,%s\n", i, []string{"a", "b", "c", "d"}[i%4])
	}
	file, drawn := filepath.Join(dir, "x.csv"), filepath.Join(dir, "p.svg")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	classes := map[string]float64{}
	for _, alpha := range []string{"0.05", "1000"} {
		code, stdout, stderr := runCLI(t, "partition", "--data", file, "--alpha", alpha, "--clients", "100", "--plot", drawn, "--json")
		var r partitioned
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatal(stderr, err)
		}
		sum := 0
		for _, row := range r.Counts {
			for _, n := range row {
				sum += n
			}
		}
		if sum != r.Examples || sum < 300 || len(r.Counts) != 4 || len(r.Counts[0]) != r.Clients {
			t.Errorf("%d counted of %d at %d clients", sum, r.Examples, r.Clients)
		}
		classes[alpha] = r.Classes
		if svg, err := os.ReadFile(drawn); err != nil || !bytes.Contains(svg, []byte("<svg")) {
			t.Errorf("no plot: %v", err)
		}
	}
	if classes["0.05"] > 2.5 || classes["1000"] < 3.5 {
		t.Errorf("classes a client: %v", classes)
	}
	for _, bad := range [][]string{{}, {"--data", file, "--plot", "p.gif"}, {"--data", file, "--clients", "0"}, {"--data", file, "--alpha", "0"}} {
		if code, _, stderr := runCLI(t, append([]string{"partition"}, bad...)...); code != 2 {
			t.Errorf("%v: code %d, %s", bad, code, stderr)
		}
	}
}
