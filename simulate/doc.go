// Package simulate runs a job without sockets, to answer before it is deployed: with this many
// devices, this sampling rate, budget and scheme, what accuracy, and at what cost?
//
//	r, err := simulate.New(cfg)
//	...
//	result, err := r.Rounds(ctx)
//
// [New] checks a [Config] and continues an interrupted run; [Run.Rounds] makes all rounds and
// measures every rank. The clients are a [Population]: [Each] has sets in memory, [Partition]
// divides one set, [Invoices] generates documents.
//
// It is the service without its sockets. core.Core draws and releases rounds, every member
// of a cohort goes through edge.Contribute, and the two are joined by a sum of integers, in which
// the masks of a real round would cancel out. With the same seed a simulation and a reproducible
// run over sockets arrive at the same adapter, bit for bit, whatever the number of workers.
//
// A population of millions is scaled down (McMahan et al. 2018): a small cohort is trained, with
// the noise that the large cohort's mean would have.
//
// Nothing here protects anybody: the data is the caller's own, every secret is derived from a seed,
// and epsilon is what the simulated deployment would spend.
package simulate
