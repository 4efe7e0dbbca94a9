package fleetdata

import (
	"fmt"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
)

// As many providers in every client: the mean is that number, and not a little
// above it, which a job refuses.
func TestMeanOfEqualProviders(t *testing.T) {
	for clients := 4; clients < 40; clients++ {
		for n := 1; n <= 12; n++ {
			set := &dataset.Set{}
			for p := range n {
				set.Examples = append(set.Examples, dataset.Example{Provider: fmt.Sprint(p)})
			}
			d := &Data{}
			for range clients {
				d.Clients = append(d.Clients, set)
			}
			if most, mean, err := d.Providers(); err != nil || most != n || mean != float64(n) {
				t.Errorf("%d clients of %d providers: most %d, mean %v, %v", clients, n, most, mean, err)
			}
		}
	}
}

// What chooses a rank, what is reported and what is trained on are of different
// providers: none of a validation's is in a client's data, none of the test's in either.
func TestPublicPartsAreApart(t *testing.T) {
	d, err := Invoices(3, 6)
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	count := func(part string, set *dataset.Set) {
		t.Helper()
		if len(set.Examples) == 0 {
			t.Fatalf("%s is empty", part)
		}
		for _, e := range set.Examples {
			for _, key := range []string{"provider " + e.Provider, "text " + e.Text} {
				if had, ok := owner[key]; ok && had != part {
					t.Fatalf("%s has the %s of %s", part, key, had)
				}
				owner[key] = part
			}
		}
	}
	for _, c := range d.Clients {
		count("training", c)
	}
	count("validation", d.Validation)
	count("the test", d.Test)
	if len(d.Validation.Examples) != validationInvoices || len(d.Test.Examples) != testInvoices {
		t.Errorf("%d to validate, %d to test", len(d.Validation.Examples), len(d.Test.Examples))
	}
}
