// Package fleetdata makes the data of a fleet on this machine: generated (invoices, digits,
// questions about documents, spoken words, commands), or a labelled file that is divided over devices and held out of.
package fleetdata

import (
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/partition"
)

// Data holds the data of a fleet on this machine: a part for each client, and two public parts that no client
// holds.
type Data struct {
	Name       string
	SHA256     string // of what was read (Hash); "" for generated data
	Labels     []string
	Clients    []*dataset.Set
	Validation *dataset.Set // chooses the rank, drives live progress
	Test       *dataset.Set // reports
	Notes      []string     // what was divided otherwise than one would expect
}

// Sizes of the generated invoice task.
const (
	InvoicesPerClient   = 192
	providersPerClient  = 12
	validationInvoices  = 800
	testInvoices        = 1600
	invoicesPerProvider = 8 // of the two public parts: many providers, few documents each
)

// Invoices makes the invoice task for a number of clients.
func Invoices(seed uint64, clients int) (*Data, error) {
	d := &Data{Name: "invoices", Labels: dataset.InvoiceLabels()}
	train, err := dataset.Invoices(dataset.InvoiceConfig{Seed: seed, Split: "train", Clients: clients,
		PerClient: InvoicesPerClient, Providers: providersPerClient})
	if err != nil {
		return nil, err
	}
	if err := d.deal(train, clients, seed); err != nil {
		return nil, err
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

// deal divides train over a number of clients by its users.
func (d *Data) deal(train *dataset.Set, clients int, seed uint64) error {
	parts, err := partition.ByUser(train, clients, seed)
	if err != nil {
		return err
	}
	for _, p := range parts {
		d.Clients = append(d.Clients, train.Pick(p))
	}
	return nil
}

// Providers returns the largest and the mean number of providers of a client.
func (d *Data) Providers() (most int, mean float64, err error) {
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
