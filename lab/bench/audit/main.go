// Command audit writes what lab/bench/audit/run.sh attacks: documents of generated providers, of
// each some to train on and others to ask, and those of providers that nobody trains on.
//
//	go run -C lab ./bench/audit -out FOLDER [-providers 400] [-train 3]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/files"
)

// Queries of a provider are leastQueries, one more for the next, and so on: some have more than
// ten, as the published attack's largest set asks for.
const (
	leastQueries = 4
	manyQueries  = 12
	testSenders  = 40
)

func main() {
	out := flag.String("out", "", "folder for train.jsonl, queries.jsonl and test.jsonl, and of texts with labels labelled-train.jsonl and so on")
	providers := flag.Int("providers", 400, "providers")
	train := flag.Int("train", 3, "documents of each to train on")
	seed := flag.Uint64("seed", 1, "seed of the documents")
	flag.Parse()
	if err := write(*out, *providers, *train, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

func write(out string, providers, train int, seed uint64) error {
	sets := []struct {
		name string
		make func(split string, providers, each int) (*dataset.Set, error)
	}{
		{"", func(split string, providers, each int) (*dataset.Set, error) {
			return dataset.Documents(dataset.DocumentConfig{Seed: seed, Split: split, Clients: providers, PerClient: each, Providers: 1, Identifiers: true})
		}},
		{"labelled-", func(split string, providers, each int) (*dataset.Set, error) {
			return dataset.Invoices(dataset.InvoiceConfig{Seed: seed, Split: split, Clients: providers, PerClient: each, Providers: 1})
		}},
	}
	each := train + leastQueries + manyQueries - 1
	for _, s := range sets {
		all, err := s.make("train", providers, each)
		if err != nil {
			return err
		}
		test, err := s.make("test", testSenders, 4)
		if err != nil {
			return err
		}
		var learnt, asked []int
		for i := range all.Examples {
			p, k := i/each, i%each
			if k < train {
				learnt = append(learnt, i)
			} else if k < train+leastQueries+p%manyQueries {
				asked = append(asked, i)
			}
		}
		for name, set := range map[string]*dataset.Set{"train": all.Pick(learnt), "queries": all.Pick(asked), "test": test} {
			if err := files.WriteJSONLines(filepath.Join(out, s.name+name+".jsonl"), set); err != nil {
				return err
			}
		}
	}
	return nil
}
