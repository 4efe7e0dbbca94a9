package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A line's page is the file that it names; what cannot be one is refused with line and key.
func TestPagesBesideDocuments(t *testing.T) {
	dir := t.TempDir()
	m := newImage(5, 4, 3)
	m.Pixels[7] = 1
	if err := os.Mkdir(filepath.Join(dir, "pages"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WritePNG(filepath.Join(dir, "pages", "a.png"), m); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"no.png": "no picture", "wide.pgm": "P5 70000 70000 255\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "x.jsonl")
	load := func(image string) (*Set, error) {
		line := fmt.Sprintf(`{"words":["a"],"image":%s,"questions":[{"question":"q","answers":"a"},{"question":"r","answers":"b"}]}`, image)
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path)
	}
	set, err := load(`"pages/a.png"`)
	if err != nil || set.Form() != FormQuestions || set.Examples[0].Image == nil || set.Examples[0].Image != set.Examples[1].Image {
		t.Fatalf("%+v, %v", set, err)
	}
	got, err := set.Examples[1].Image.Decoded()
	if err != nil || !slices.Equal(got.Pixels, m.Pixels) {
		t.Errorf("the page is %+v, %v", got, err)
	}
	if err := WriteJSONLines(filepath.Join(dir, "again.jsonl"), set); err != nil {
		t.Fatal(err)
	}
	again, err := Load(filepath.Join(dir, "again.jsonl"))
	if err != nil || again.Examples[0].Image == nil || !bytes.Equal(again.Examples[0].Image.Identity(), set.Examples[0].Image.Identity()) {
		t.Errorf("written and read: %+v, %v", again, err)
	}
	if err := WriteJSONLines(filepath.Join(t.TempDir(), "far.jsonl"), set); err == nil {
		t.Error("a page outside of its file's folder is written")
	}
	for image, why := range map[string]string{
		`"../a.png"`: "within the folder", `"/etc/passwd.png"`: "within the folder", `"b.png"`: "b.png", `[1]`: "path of a .png", `"a.gif"`: "path of a .png",
		`"no.png"`: "neither PNG", `"wide.pgm"`: "70000 x 70000",
	} {
		var at *LineError
		if _, err := load(image); !errors.As(err, &at) || at.Line != 1 || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "image") {
			t.Errorf("%s: %v", image, err)
		}
	}
	if set, err = load("null"); err != nil || set.Examples[0].Image != nil {
		t.Errorf("no page: %v", err)
	}
}

// What a scanner makes of a document changes neither its questions nor its answers; a page has the sender's logo at its
// place and all that is printed, also what is misread.
func TestScannedDocuments(t *testing.T) {
	make := func(f func(*DocumentConfig)) *Set {
		c := DocumentConfig{Seed: 3, Split: "train", Clients: 2, PerClient: 12}
		if f != nil {
			f(&c)
		}
		set, err := Documents(c)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	plain, scanned := make(nil), make(func(c *DocumentConfig) { c.Pages, c.Noise = true, 0.1 })
	unnamed := make(func(c *DocumentConfig) { c.Pages, c.Unnamed = true, true })
	again := make(func(c *DocumentConfig) { c.Pages, c.Noise = true, 0.1 })
	letters, changed := 0, 0
	logos := map[string][]float32{}
	for i, e := range scanned.Examples {
		p := plain.Examples[i]
		if e.Question != p.Question || e.Answers[0] != p.Answers[0] || !slices.Equal(e.Boxes, p.Boxes) || p.Image != nil {
			t.Fatalf("document %d asks otherwise: %+v", i, e)
		}
		for k := range len(e.Text) {
			if letters++; e.Text[k] != p.Text[k] {
				changed++
			}
		}
		m, err := e.Image.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		twice, err := again.Examples[i].Image.Decoded()
		if err != nil || !slices.Equal(twice.Pixels, m.Pixels) || !bytes.Equal(again.Examples[i].Image.Identity(), e.Image.Identity()) {
			t.Fatalf("document %d is drawn in two ways", i)
		}
		u, err := unnamed.Examples[i].Image.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		logo := func(m *Image) (out []float32) { // the upper corner opposite to the name
			for x := range 8 * 7 {
				left := 161 // opposite to a head at the left
				if p.Boxes[0][0] == 480 {
					left = 7
				}
				out = append(out, m.Pixels[3*m.Width+left+x])
			}
			return out
		}
		if seen := logos[e.Provider]; seen != nil && !slices.Equal(seen, logo(m)) || !slices.Equal(logo(u), logo(m)) {
			t.Errorf("document %d has another logo than others of its sender", i)
		}
		logos[e.Provider] = logo(m)
		name := strings.Fields(p.Text)[:3]
		if strings.Contains(unnamed.Examples[i].Text, strings.Join(name, " ")) || !strings.HasSuffix(p.Text, unnamed.Examples[i].Text) {
			t.Errorf("document %d has its sender's name: %s", i, unnamed.Examples[i].Text)
		}
		ink := func(m *Image) (n int) {
			for _, v := range m.Pixels {
				if v == 0 {
					n++
				}
			}
			return n
		}
		if ink(m) <= ink(u) || ink(u) < 500 {
			t.Errorf("document %d has %d values of ink, without its name %d", i, ink(m), ink(u))
		}
	}
	if share := float64(changed) / float64(letters); share < 0.05 || share > 0.1 {
		t.Errorf("%.3f of all characters are misread, want somewhat less than 0.1", share)
	}
	if len(logos) < 4 {
		t.Errorf("%d senders", len(logos))
	}
	if _, err := Documents(DocumentConfig{Split: "train", Clients: 1, PerClient: 1, Noise: 2}); err == nil {
		t.Error("noise of 2")
	}
}
