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

	"github.com/starling-fl/starling/internal/app/evaluation"
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
	var scored evaluation.Report
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

// A folder of a folder for each label is data for the demo as it is for simulations, and
// what comes of it scores the folder and labels what is in one of its own.
func TestDemoOnAFolderOfImages(t *testing.T) {
	dir := t.TempDir()
	shapes := filepath.Join(dir, "shapes")
	for i := range 40 {
		for label, row := range map[string]string{"left": "9 9 0 0 0 ", "right": "0 0 0 9 9 "} {
			at := filepath.Join(shapes, label)
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			image := "P2 5 3 16 " + strings.ReplaceAll(strings.Repeat(row, 3), "9", fmt.Sprint(9+i%7))
			if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("%02d.pgm", i)), []byte(image), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	code, out, stderr := runCLI(t, "demo", "--task", "image", "--data", shapes, "--devices", "4", "--vanish", "0", "--rounds", "1", "--reproducible",
		"--out", filepath.Join(dir, "run"), "--json")
	if code != 0 || !strings.Contains(stderr, "shapes: 4 devices, 2 labels") || !strings.Contains(stderr, "images are scaled to 32 x 32") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var demo struct{ Checkpoint string }
	if err := json.Unmarshal([]byte(out), &demo); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"evaluate", shapes}, 0, "80 images of "},
		{[]string{"evaluate", filepath.Join(shapes, "left")}, 2, "want a folder for each label"},
		{[]string{"predict", filepath.Join(shapes, "left")}, 0, "\n"},
		{[]string{"predict", shapes}, 2, "its images are in folders: give one of those"},
	} {
		code, out, stderr := runCLI(t, append([]string{c.args[0], "--checkpoint", demo.Checkpoint}, c.args[1:]...)...)
		if code != c.code || !strings.Contains(out+stderr, c.want) {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out, stderr)
		}
	}
	// A base that reads images has one task, which nobody needs to name.
	base := filepath.Join(demo.Checkpoint, "base")
	code, _, stderr = runCLI(t, "simulate", "--base", base, "--data", shapes, "--rounds", "1", "--cohort", "30", "--every", "0", "--out", filepath.Join(dir, "runs"))
	if code != 0 || !strings.Contains(stderr, "task: image, the only one of a vit") {
		t.Errorf("simulate: exit %d: %s", code, stderr)
	}
	code, _, stderr = runCLI(t, "simulate", "--base", base, "--data", shapes, "--rounds", "1", "--set", "task=classify", "--out", filepath.Join(dir, "runs"))
	if code == 0 || !strings.Contains(stderr, "set task to image") {
		t.Errorf("simulate of another task: exit %d: %s", code, stderr)
	}
	job := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(job, []byte("name: x\nlabels: [left, right]\nbase: "+base+"\ncohort: {population: 4}\nshard: {size: 4, floor: 2, breach_bits: 0, corrupt: 0}\nprivacy: {epsilon: 100000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = runCLI(t, "serve", "--job", job, "--dir", filepath.Join(dir, "served"), "--validation", filepath.Join(dir, "none.csv"))
	if code != 2 || !strings.Contains(stderr, "task: image, the only one of a vit") || !strings.Contains(stderr, "none.csv: no such file") {
		t.Errorf("serve: exit %d: %s", code, stderr)
	}
	code, _, stderr = runCLI(t, "demo", "--base", base, "--out", filepath.Join(dir, "run"))
	if code != 2 || !strings.Contains(stderr, "a vit, is for the task image, and what invoices holds is for classify") {
		t.Errorf("demo on texts: exit %d: %s", code, stderr)
	}
}
