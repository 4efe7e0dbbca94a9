package sweep

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/partition"
	"github.com/starling-fl/starling/simulate"
)

// providersPerClient of generated invoices.
const providersPerClient = 6

// Division describes how a file's examples are divided among clients.
type Division struct {
	Clients  int `json:"clients"`  // with examples of their own
	HeldOut  int `json:"held_out"` // users of whom validation or test has examples, and no client
	Examples int `json:"examples"` // of all clients
	// Reused is the mean number of clients that hold the same examples.
	Reused float64 `json:"reused"`
	// Largest is the share of the examples that one client has.
	Largest float64 `json:"largest"`
}

// String says it in a line.
func (d Division) String() string {
	out := fmt.Sprintf("%d clients hold %d examples, %.0f %% of them the largest", d.Clients, d.Examples, 100*d.Largest)
	if d.HeldOut > 0 {
		out += fmt.Sprintf("; %d users are held out", d.HeldOut)
	}
	if d.Reused > 1 {
		out += fmt.Sprintf("; each represents %.3g of the population", d.Reused)
	}
	return out
}

// Spread summarizes the result of Divide for a population of that size.
func (d *Data) Spread(parts [][]int, population int) *Division {
	out := &Division{Reused: float64(population) / float64(len(parts))}
	largest := 0
	trained, held := map[string]bool{}, map[string]bool{}
	for _, p := range parts {
		if len(p) > 0 {
			out.Clients++
		}
		out.Examples += len(p)
		largest = max(largest, len(p))
		for _, i := range p {
			trained[d.Train.Examples[i].User] = true
		}
	}
	for _, set := range []*dataset.Set{d.Validation, d.Test} {
		for _, e := range set.Examples {
			if e.User != "" && !trained[e.User] {
				held[e.User] = true
			}
		}
	}
	out.HeldOut = len(held)
	out.Largest = float64(largest) / float64(max(1, out.Examples))
	return out
}

// population puts the clients together, and says how.
func (d *Data) population(s Settings) (simulate.Population, string, *Division, error) {
	if d.Train == nil {
		if s.IID || s.MinExamples > 0 || s.Pooled {
			return nil, "", nil, badSetting("iid, min_examples and pooled are about a file that is divided; invoices are generated for each client")
		}
		return simulate.Invoices{Config: dataset.InvoiceConfig{
			Seed: s.Seed, Split: "train", Clients: s.Population, PerClient: s.Examples, Providers: providersPerClient,
		}}, fmt.Sprintf("%s of %d for a client", d.Name, s.Examples), nil, nil
	}
	parts, how, err := d.Divide(s)
	if err != nil {
		return nil, "", nil, err
	}
	p, err := simulate.NewPartition(d.Train, parts)
	if err != nil {
		return nil, "", nil, err
	}
	spread := d.Spread(parts, s.Population)
	if p.Len() == s.Population {
		return p, how, spread, nil
	}
	return simulate.Reused{Of: p, N: s.Population}, how + ", reused", spread, nil
}

// Divide gives each client of a file the indices of its examples in Train, and says how
// it was done, exactly enough that two divisions of one name are the same.
func (d *Data) Divide(s Settings) (parts [][]int, how string, err error) {
	switch {
	case d.Clients != nil:
		if n := len(d.Clients); n > s.Population && !s.Pooled {
			return nil, "", badSetting("population is %d, and the partition has %d clients: want as many, or more, which hold the same again", s.Population, n)
		}
		for _, p := range d.Clients {
			parts = append(parts, slices.Clone(p))
		}
		how = fmt.Sprintf("%s over %d by partition", d.SHA256, len(parts))
	case slices.ContainsFunc(d.Train.Examples, func(e dataset.Example) bool { return e.User == "" }):
		n := min(s.Population, max(1, len(d.Train.Examples)/s.Examples))
		parts, err = partition.Dirichlet(d.Train, n, s.Alpha, s.Seed)
		how = fmt.Sprintf("%s over %d by Dirichlet(%v)", d.SHA256, n, s.Alpha)
	default:
		users := map[string]bool{}
		for _, e := range d.Train.Examples {
			users[e.User] = true
		}
		n := min(s.Population, len(users))
		parts, err = partition.ByUser(d.Train, n, s.Seed)
		how = fmt.Sprintf("%s over %d by user", d.SHA256, n)
	}
	if err != nil {
		return nil, "", err
	}
	if s.MinExamples > 0 {
		all := len(parts)
		parts = slices.DeleteFunc(parts, func(p []int) bool { return len(p) < s.MinExamples })
		if len(parts) == 0 {
			return nil, "", badSetting("min_examples is %d, and none of %d clients has as many", s.MinExamples, all)
		}
		how += fmt.Sprintf(", those %d with %d examples or more", len(parts), s.MinExamples)
	}
	if s.MinPerClass > 0 {
		how += fmt.Sprintf(", %d classes of %d examples or more", len(d.Labels), s.MinPerClass)
	}
	if s.IID {
		shuffle(parts, s.Seed)
		how += ", shuffled"
	}
	if s.Pooled {
		parts = [][]int{slices.Concat(parts...)}
		how += ", pooled"
	}
	return parts, how, nil
}

// shuffle deals the examples of all clients out anew, by chance alone; each client has as
// many as before.
func shuffle(parts [][]int, seed uint64) {
	all := slices.Concat(parts...)
	rng := rand.New(rand.NewChaCha8(shuffling(seed)))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, p := range parts {
		n := len(p)
		parts[i], all = all[:n:n], all[n:]
	}
}

// shuffling keys the order by the seed, apart from what else is drawn from it.
func shuffling(seed uint64) (key [32]byte) {
	copy(key[:], "shuffled")
	binary.LittleEndian.PutUint64(key[8:], seed)
	return key
}

// Counts counts the examples of each class at each client: a_ij of figures that show a
// partition. Its rows are the set's labels.
func Counts(set *dataset.Set, parts [][]int) [][]int {
	table := make([][]int, len(set.Labels))
	for c := range table {
		table[c] = make([]int, len(parts))
	}
	for j, part := range parts {
		for _, i := range part {
			table[set.Examples[i].Label][j]++
		}
	}
	return table
}
