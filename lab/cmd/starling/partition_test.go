package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/lab/internal/commands"
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
		var r commands.Partitioned
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

// A file's own column of clients is a partition of it, and what a partition must not hold is
// refused before anything is made.
func TestPartitionFromAFile(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("text,label,client\n")
	for i := range 90 {
		client := ""
		if i%9 < 6 {
			client = fmt.Sprint("shop ", i%9)
		}
		fmt.Fprintf(&text, "text %d,%s,%s\n", i, []string{"a", "b"}[i%2], client)
	}
	file := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runCLI(t, "partition", "--data", file, "--partition", file, "--json")
	var r commands.Partitioned
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatal(stderr, err)
	}
	if r.Clients != 6 || r.Least != 10 || r.Most != 10 || r.Examples != 60 {
		t.Errorf("%+v", r)
	}
	lists := filepath.Join(dir, "lists.json")
	if err := os.WriteFile(lists, []byte("[[0, 1], [1]]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"partition", "simulate"} {
		code, _, stderr = runCLI(t, command, "--data", file, "--partition", lists)
		if code == 0 || !strings.Contains(stderr, "lists.json: client 1 has example 1, which client 0 has too") {
			t.Errorf("%s: code %d, %s", command, code, stderr)
		}
	}
	if code, _, stderr := runCLI(t, "simulate", "--partition", lists); code != 2 || !strings.Contains(stderr, "data names none") {
		t.Errorf("a partition of nothing: code %d, %s", code, stderr)
	}
}

// Generated paintings are a folder like any other, of which rare artists can be left out.
func TestPaintingsByArtist(t *testing.T) {
	art := filepath.Join(t.TempDir(), "art")
	code, _, stderr := runCLI(t, "lab", "paintings", "--out", art, "--artists", "3", "--each", "12", "--minor", "2", "--side", "16")
	if code != 0 {
		t.Fatal(stderr)
	}
	for least, want := range map[string]int{"0": 5, "12": 3} {
		code, stdout, stderr := runCLI(t, "partition", "--data", art, "--min-per-class", least, "--json")
		var r commands.Partitioned
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatal(stderr, err)
		}
		if len(r.Labels) != want || r.Labels[0] != "artist-1" {
			t.Errorf("artists with %s or more: %q", least, r.Labels)
		}
	}
	if code, _, stderr := runCLI(t, "partition", "--data", art, "--min-per-class", "30"); code == 0 || !strings.Contains(stderr, "min_per_class is 30") {
		t.Errorf("nobody has as many: code %d, %s", code, stderr)
	}
	if code, _, stderr := runCLI(t, "lab", "paintings", "--out", art, "--side", "3"); code != 2 || !strings.Contains(stderr, "want 8 to 512") {
		t.Errorf("a side of 3: code %d, %s", code, stderr)
	}
}
