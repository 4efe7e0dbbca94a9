package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fleet trains on a table of pixels, and what it releases scores the table and
// labels single images.
func TestDemoOnImages(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("label")
	for i := range 16 {
		fmt.Fprintf(&table, ",p%d", i)
	}
	for n := range 80 {
		side := n % 2
		fmt.Fprintf(&table, "\n%s", []string{"left", "right"}[side])
		for i := range 16 {
			v := n % 3
			if i%4/2 == side {
				v = 16 - n%5
			}
			fmt.Fprintf(&table, ",%d", v)
		}
	}
	pixels := filepath.Join(dir, "pixels.csv")
	if err := os.WriteFile(pixels, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	starling := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("starling %v: %s", args, errs.String())
		}
		return out.String()
	}
	var demo struct{ Checkpoint string }
	if err := json.Unmarshal([]byte(starling("demo", "--data", pixels, "--clients", "4", "--vanish", "0", "--rounds", "12", "--reproducible",
		"--out", filepath.Join(dir, "run"), "--json")), &demo); err != nil {
		t.Fatal(err)
	}
	var scored evaluateReport
	if err := json.Unmarshal([]byte(starling("evaluate", "--checkpoint", demo.Checkpoint, "--rank", "all", "--json", pixels)), &scored); err != nil {
		t.Fatal(err)
	}
	if scored.Texts != 80 || scored.Ranks[0].Accuracy < 0.9 {
		t.Errorf("%+v", scored)
	}
	said := strings.Fields(starling("predict", "--checkpoint", demo.Checkpoint, pixels))
	if len(said) != 80 {
		t.Fatalf("%d labels", len(said))
	}
	image := filepath.Join(dir, "one.pgm")
	if err := os.WriteFile(image, []byte("P2 4 4 16 "+strings.Repeat("16 16 0 0 ", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	if one := strings.TrimSpace(starling("predict", "--checkpoint", demo.Checkpoint, image)); one != said[0] {
		t.Errorf("an image is %q, the row like it %q", one, said[0])
	}
}
