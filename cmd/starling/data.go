package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/dataset"
)

// fleetData is what a fleet on this machine trains on: one part a client, and
// two public parts that no client holds.
type fleetData struct {
	Name       string
	Labels     []string
	Clients    []*dataset.Set
	Validation *dataset.Set // chooses the rank, drives live progress
	Test       *dataset.Set // reports
}

// Sizes of the generated invoice task.
const (
	invoicesPerClient   = 192
	providersPerClient  = 12
	validationInvoices  = 800
	testInvoices        = 1600
	invoicesPerProvider = 8 // of the two public parts: many providers, few documents each
)

// generatedData makes the invoice task for a number of clients.
func generatedData(seed uint64, clients int) (*fleetData, error) {
	d := &fleetData{Name: "invoices", Labels: dataset.InvoiceLabels()}
	train, err := dataset.Invoices(dataset.InvoiceConfig{Seed: seed, Split: "train", Clients: clients,
		PerClient: invoicesPerClient, Providers: providersPerClient})
	if err != nil {
		return nil, err
	}
	parts, err := dataset.ByUser(train, clients, seed)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		d.Clients = append(d.Clients, train.Pick(p))
	}
	public := func(split string, n int) (*dataset.Set, error) {
		return dataset.Invoices(dataset.InvoiceConfig{Seed: seed, Split: split, Clients: n / invoicesPerProvider,
			PerClient: invoicesPerProvider, Providers: 1})
	}
	if d.Validation, err = public("validation", validationInvoices); err != nil {
		return nil, err
	}
	d.Test, err = public("test", testInvoices)
	return d, err
}

// providers counts those of each client: the most, and the mean.
func (d *fleetData) providers() (most int, mean float64, err error) {
	all := 0
	for _, c := range d.Clients {
		names, _, err := c.Groups()
		if err != nil {
			return 0, 0, err
		}
		most = max(most, len(names))
		all += len(names)
	}
	// One division: a sum of fractions may come out above most.
	return most, float64(all) / float64(len(d.Clients)), nil
}

// fileData divides a labelled file: 80% to the clients (by user where the
// file names users, else by label with Dirichlet(alpha)), 10% to validation
// and 10% to test.
func fileData(path string, seed uint64, clients int, alpha float64) (*fleetData, error) {
	all, err := dataset.Load(path)
	if err != nil {
		return nil, err
	}
	if len(all.Labels) < 2 {
		return nil, fmt.Errorf("%s: every example has the label %q: want at least 2 labels", path, all.Labels[0])
	}
	parts, err := dataset.Split(all, seed, 0.8, 0.1, 0.1)
	if err != nil {
		return nil, err
	}
	d := &fleetData{Name: filepath.Base(path), Labels: all.Labels, Validation: parts[1], Test: parts[2]}
	if len(d.Validation.Examples) == 0 || len(d.Test.Examples) == 0 {
		return nil, fmt.Errorf("%s: %d examples are too few to hold out validation and test", path, len(all.Examples))
	}
	train := parts[0]
	var split [][]int
	if slices.ContainsFunc(train.Examples, func(e dataset.Example) bool { return e.User == "" }) {
		split, err = dataset.Dirichlet(train, clients, alpha, seed)
	} else {
		split, err = dataset.ByUser(train, clients, seed)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range split {
		d.Clients = append(d.Clients, train.Pick(p))
	}
	return d, nil
}
