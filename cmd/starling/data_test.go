package main

import (
	"fmt"
	"testing"

	"github.com/starling-fl/starling/dataset"
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
			d := &fleetData{}
			for range clients {
				d.Clients = append(d.Clients, set)
			}
			if most, mean, err := d.providers(); err != nil || most != n || mean != float64(n) {
				t.Errorf("%d clients of %d providers: most %d, mean %v, %v", clients, n, most, mean, err)
			}
		}
	}
}
