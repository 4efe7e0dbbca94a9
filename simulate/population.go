package simulate

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/data/dataset"
)

// A Population is the registered clients. Implementations are immutable and safe for concurrent
// use; a client's examples are made when it is drawn.
type Population interface {
	Len() int
	// Client returns client i's examples, 0 <= i < Len(); it may have none.
	Client(i int) (*dataset.Set, error)
	// Labels are the classes' names, in the order of their indices.
	Labels() []string
}

// Partition is a set divided among clients: every example belongs to at most one client. It takes 4
// bytes an example and 4 a client in addition to the set.
type Partition struct {
	set     *dataset.Set
	order   []uint32 // examples, client by client
	offsets []uint32 // where client i's begin; one more at the end
}

// NewPartition takes each client's examples as indices into the set, as
// package partition yields them.
func NewPartition(set *dataset.Set, parts [][]int) (*Partition, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("simulate: a partition of no clients")
	}
	if len(set.Examples) > math.MaxUint32 {
		return nil, fmt.Errorf("simulate: %d examples, the limit is %d", len(set.Examples), math.MaxUint32)
	}
	p := &Partition{set: set, order: make([]uint32, 0, len(set.Examples)), offsets: make([]uint32, 1, len(parts)+1)}
	taken := make([]bool, len(set.Examples))
	for client, part := range parts {
		for _, i := range part {
			if i < 0 || i >= len(set.Examples) || taken[i] {
				return nil, fmt.Errorf("simulate: client %d's example %d is not among the set's %d, or another client has it", client, i, len(set.Examples))
			}
			taken[i] = true
			p.order = append(p.order, uint32(i))
		}
		p.offsets = append(p.offsets, uint32(len(p.order)))
	}
	return p, nil
}

// Len implements Population.
func (p *Partition) Len() int { return len(p.offsets) - 1 }

// Labels implements Population.
func (p *Partition) Labels() []string { return p.set.Labels }

// Client implements Population.
func (p *Partition) Client(i int) (*dataset.Set, error) {
	part := p.order[p.offsets[i]:p.offsets[i+1]]
	at := make([]int, len(part))
	for k, e := range part {
		at[k] = int(e)
	}
	return p.set.Pick(at), nil
}

// Each is a population of sets that are in memory, one a client.
type Each []*dataset.Set

// Len implements Population.
func (e Each) Len() int { return len(e) }

// Labels implements Population.
func (e Each) Labels() []string { return e[0].Labels }

// Client implements Population.
func (e Each) Client(i int) (*dataset.Set, error) { return e[i], nil }

// Reused lets a small population represent a large one: client i has the examples of client i
// modulo the small size. Noise, sampling and cohorts are those of the large population; the variety
// of data is not.
type Reused struct {
	Of Population
	N  int // at least Of.Len()
}

// Len implements Population.
func (r Reused) Len() int { return r.N }

// Labels implements Population.
func (r Reused) Labels() []string { return r.Of.Labels() }

// Client implements Population.
func (r Reused) Client(i int) (*dataset.Set, error) { return r.Of.Client(i % r.Of.Len()) }

// Invoices generates every client's documents when it is drawn.
type Invoices struct{ Config dataset.InvoiceConfig }

// Len implements Population.
func (v Invoices) Len() int { return v.Config.Clients }

// Labels implements Population.
func (v Invoices) Labels() []string { return dataset.InvoiceLabels() }

// Client implements Population.
func (v Invoices) Client(i int) (*dataset.Set, error) { return dataset.InvoicesOf(v.Config, i) }
