//go:build js

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall/js"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/web/client"
)

const (
	previewRows = 5
	rowText     = 200 // characters
	rowSide     = 64  // pixels
)

func preview(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeObject {
			return nil, errors.New("preview takes a source")
		}
		set, err := read(args[0])
		if err != nil {
			return nil, err
		}
		p, err := look(set)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(p)
		return string(b), err
	})
}

func look(set *dataset.Set) (client.Preview, error) {
	p := client.Preview{Kind: string(set.Form()), Examples: len(set.Examples), Labels: []client.LabelCount{}, Rows: []client.Row{}}
	counts := make([]int, len(set.Labels))
	groups := map[string]bool{}
	shown := map[int]bool{} // labels of pictures and recordings
	for i, e := range set.Examples {
		sound, err := heard(e, i, &p)
		if err != nil {
			return p, err
		}
		if len(counts) > 0 {
			for _, label := range e.Classes() {
				counts[label]++
			}
		}
		if g := e.Group(); g != "" {
			groups[g] = true
		}
		if len(p.Rows) == previewRows || e.Form().Textless() && shown[e.Label] && len(shown) < len(set.Labels) {
			continue
		}
		shown[e.Label] = true
		r, err := rowOf(set, e)
		if err != nil {
			return p, err
		}
		r.Sound = sound
		p.Rows = append(p.Rows, r)
	}
	p.Groups = len(groups)
	for i, n := range counts {
		p.Labels = append(p.Labels, client.LabelCount{Name: set.Labels[i], Count: n})
	}
	slices.SortStableFunc(p.Labels, func(a, b client.LabelCount) int { return cmp.Compare(b.Count, a.Count) })
	return p, nil
}

func rowOf(set *dataset.Set, e dataset.Example) (r client.Row, err error) {
	switch {
	case e.Image != nil:
		r.Label = set.Labels[e.Label]
		r.Picture, err = shrunk(e.Image)
		return r, err
	case e.Recording != nil && e.Text != "":
		r.Label = e.Text
	case e.Recording != nil:
		r.Label = set.Labels[e.Label]
		return r, nil
	case e.Tags != nil:
		var words strings.Builder
		for i, w := range e.Words {
			fmt.Fprintf(&words, "%s\u2009[%s] ", w, set.Labels[e.Tags[i]])
		}
		r.Text = words.String()
	case e.Labels != nil:
		var names []string
		for _, l := range e.Labels {
			names = append(names, set.Labels[l])
		}
		r.Label, r.Text = strings.Join(names, ", "), e.Text
	case e.Question != "":
		r.Label, r.Text = strings.Join(e.Answers, " / "), e.Question+" \u2014 "+e.Text
	case e.Completion != "":
		r.Text = e.Prompt + " \u2192 " + e.Completion
	case e.Messages != "":
		r.Text = spoken(e.Messages)
	case len(set.Labels) == 0:
		r.Text = e.Text
	default:
		r.Label, r.Text = set.Labels[e.Label], e.Text
	}
	for _, s := range []*string{&r.Text, &r.Label} {
		runes := []rune(*s)
		*s = string(runes[:min(len(runes), rowText)])
	}
	return r, nil
}

// shrunk is a picture to look at.
func shrunk(m *dataset.Image) (*client.Picture, error) {
	m, err := m.Decoded()
	if err != nil {
		return nil, err
	}
	most := max(m.Width, m.Height, rowSide)
	w, h := max(1, m.Width*rowSide/most), max(1, m.Height*rowSide/most)
	m = m.Fit(w, h, 3)
	s := &client.Picture{Width: w, Height: h, Pixels: make([]uint8, 4*w*h)}
	for i := range w * h {
		for c := range 3 {
			s.Pixels[4*i+c] = uint8(255*m.Pixels[c*w*h+i] + 0.5)
		}
		s.Pixels[4*i+3] = 255
	}
	return s, nil
}

// sampleClients is how many devices' samples there are: two visitors rarely
// train on the same.
const sampleClients = 1000

// sample is a generated set to try, as a file: labelled invoices as JSON Lines, digits as
// a table of pixels, or words as JSON of WAV files. Which one is drawn by the page.
func sample(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 2 || args[0].Type() != js.TypeNumber || args[1].Type() != js.TypeString {
			return nil, errors.New("sample takes a number and a kind")
		}
		n := args[0].Int()
		if n < 0 || n >= sampleClients {
			return nil, fmt.Errorf("sample %d, there are 0..%d", n, sampleClients-1)
		}
		switch args[1].String() {
		case "pictures":
			return digits(n)
		case "recordings":
			return words(n)
		}
		return invoices(n)
	})
}

func invoices(client int) (string, error) {
	set, err := dataset.InvoicesOf(dataset.InvoiceConfig{Seed: 1, Clients: sampleClients, PerClient: 60, Split: "train"}, client)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for _, e := range set.Examples {
		line := struct {
			Text     string `json:"text"`
			Label    string `json:"label"`
			Provider string `json:"provider,omitempty"`
		}{e.Text, set.Labels[e.Label], e.Provider}
		if err := lines.Encode(line); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// digits are of a writer who is no other sample's.
func digits(n int) (string, error) {
	set, err := dataset.Digits(1, "sample "+strconv.Itoa(n), 1, 96)
	if err != nil {
		return "", err
	}
	b := []byte("label")
	for i := range dataset.DigitSide * dataset.DigitSide {
		b = strconv.AppendInt(append(b, ",p"...), int64(i), 10)
	}
	for _, e := range set.Examples {
		b = append(append(b, '\n'), set.Labels[e.Label]...)
		for _, p := range e.Image.Pixels {
			b = strconv.AppendInt(append(b, ','), int64(16*p), 10)
		}
	}
	return string(b), nil
}
