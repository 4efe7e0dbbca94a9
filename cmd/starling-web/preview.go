//go:build js

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall/js"

	"github.com/starling-fl/starling/dataset"
)

// previewed is what a file holds, for its owner to look at before joining.
type previewed struct {
	Examples int          `json:"examples"`
	Labels   []labelCount `json:"labels"` // most frequent first
	Rows     []row        `json:"rows"`   // the first of the file
	// Groups is how many users or providers the file names; 0 where it names none.
	Groups int `json:"groups"`
}

type labelCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type row struct {
	Label string `json:"label"`
	Text  string `json:"text"` // cut to rowText characters
}

const (
	previewRows = 5
	rowText     = 200
)

// read reads a labelled file as dataset does for every device.
func read(source js.Value) (*dataset.Set, error) {
	columns := dataset.Columns{Text: text(source.Get("textColumn")), Label: text(source.Get("labelColumn"))}
	return columns.Read(bytes.NewReader(octets(source.Get("data"))), text(source.Get("fileName")))
}

func preview(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeObject {
			return nil, errors.New("preview takes a source")
		}
		set, err := read(args[0])
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(look(set))
		return string(b), err
	})
}

func look(set *dataset.Set) previewed {
	p := previewed{Examples: len(set.Examples), Labels: []labelCount{}, Rows: []row{}}
	counts := make([]int, len(set.Labels))
	groups := map[string]bool{}
	for i, e := range set.Examples {
		counts[e.Label]++
		if g := e.Group(); g != "" {
			groups[g] = true
		}
		if i < previewRows {
			runes := []rune(e.Text)
			p.Rows = append(p.Rows, row{set.Labels[e.Label], string(runes[:min(len(runes), rowText)])})
		}
	}
	p.Groups = len(groups)
	for i, n := range counts {
		p.Labels = append(p.Labels, labelCount{set.Labels[i], n})
	}
	slices.SortStableFunc(p.Labels, func(a, b labelCount) int { return cmp.Compare(b.Count, a.Count) })
	return p
}

// sampleClients is how many devices' samples there are: two visitors rarely
// train on the same.
const sampleClients = 1000

// sample is one of the generated sets of labelled invoices, as JSON Lines; which
// one is drawn by the page.
func sample(_ js.Value, args []js.Value) any {
	return promise(func() (any, error) {
		if len(args) != 1 || args[0].Type() != js.TypeNumber {
			return nil, errors.New("sample takes a number")
		}
		client := args[0].Int()
		if client < 0 || client >= sampleClients {
			return nil, fmt.Errorf("sample %d, there are 0..%d", client, sampleClients-1)
		}
		set, err := dataset.InvoicesOf(dataset.InvoiceConfig{Seed: 1, Clients: sampleClients, PerClient: 60, Split: "train"}, client)
		if err != nil {
			return nil, err
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
				return nil, err
			}
		}
		return b.String(), nil
	})
}
