// Package coordinator is the service that runs a federated fine-tuning job: it
// enrols devices, draws cohorts, carries rounds through secure aggregation,
// noises and applies the sum, and commits what may be released.
//
// One goroutine (the engine, Run) owns all state of rounds; each connection has
// a reading and a writing goroutine that own the socket and nothing else, and
// hand messages over a bounded channel. What the engine decides on lies below it, in
// packages that know nothing of each other's work: connections are internal/link's,
// who is enrolled and there internal/fleet's, deadlines internal/timing's, and what is
// shown of all that coordinator/monitor's. The round itself is the pure machine of
// coordinator/round, masking is secagg's, durable state is coordinator/store's.
// The release pipeline is one straight-line function, release, behind the
// unmasking of the shards, which runs beside the engine.
//
// The protocol follows Bonawitz et al. (CCS 2017) inside random shards, and the
// round structure of Bonawitz et al. (MLSys 2019, "Towards federated learning at
// scale"); cohort sampling, noise and accounting are McMahan et al. (ICLR 2018)
// with the discrete Gaussian of Canonne, Kamath, Steinke (2020).
//
// # Threat model
//
// Devices are hostile up to the job's corrupt fraction: they may lie, repeat,
// stall, flood, vanish and send anything. Each message is bounded before it is
// allocated, checked before it changes anything, and answered by a rejection that
// costs nobody else the round. What reads slowly is cut off, never waited for.
//
// The coordinator itself is trusted with shard sums, and to add the noise
// (central differential privacy); it never sees one device's update. Un-noised
// sums live from unmasking to the end of release: not on disk, not in the log, not in a
// metric. Rosters hide identities from shard peers, but whoever watches the
// network sees who takes part; Guarantee figures are printed with that named.
//
// Logs and metrics carry counts, states and identities' short prefixes; never
// updates, seeds, shares or keys.
package coordinator
