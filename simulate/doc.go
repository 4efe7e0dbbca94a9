// Package simulate answers before anything is deployed: with so many devices,
// this sampling rate, this budget and this scheme, what accuracy, at what cost?
//
// It is the service without its sockets: rounds are drawn and released by
// [coordinator.Core], every member of a cohort goes through [edge.Contribute],
// and in between stands a sum of integers, which the masks of a real round cancel
// out of. With the same seed a simulation and a reproducible run over sockets come
// to the same adapter, bit for bit, whatever the number of workers.
//
// A population of millions is scaled (McMahan et al. 2018): a small cohort is
// trained, with the noise that the large one's mean would carry.
//
// Nothing here protects anybody: the data is the caller's own, every secret is
// derived from a seed, and an epsilon is what the simulated deployment would
// spend.
package simulate
