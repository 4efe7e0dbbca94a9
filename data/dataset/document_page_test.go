package dataset

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

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
