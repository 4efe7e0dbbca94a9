// Package coordinator is the service that runs a federated fine-tuning job: it enrols devices,
// draws cohorts, carries rounds through secure aggregation, adds noise to the sum and applies it,
// and commits what may be released.
//
//	c, err := coordinator.New(coordinator.Config{Job: j, Dir: "run1", Base: base}) // opens the folder
//	...
//	err = c.Run(ctx) // makes rounds until the job is done
//
// [New] opens a job in its folder and refuses a job that cannot keep its promise; [Coordinator.Run]
// makes its rounds. Devices come in by [Coordinator.Attend] as a [Conn]; package coordinator/server
// puts that on the network as WebSockets over TLS. [Core] is the arithmetic alone (draw, noise,
// release), which simulations share.
//
// One goroutine, Run's engine, owns all state of rounds. Each connection has a reading and a
// writing goroutine that own the socket and nothing else, and exchange messages with the engine
// over a bounded channel. What the engine decides on is held by packages that do not know each
// other: internal/link has connections, internal/fleet who is enrolled and present, internal/timing
// the deadlines, coordinator/monitor what is shown. The round itself is the pure state machine of
// coordinator/round, masking is secagg's, durable state is coordinator/store's. The release
// pipeline is one straight-line function, release, that follows the unmasking of the shards and
// runs beside the engine.
//
// The protocol follows Bonawitz et al. (CCS 2017) inside random shards, and the round structure of
// Bonawitz et al. (MLSys 2019, "Towards federated learning at scale"); cohort sampling, noise and
// accounting are McMahan et al. (ICLR 2018) with the discrete Gaussian of Canonne, Kamath, Steinke
// (2020).
//
// # Threat model
//
// Devices are hostile up to the job's corrupt fraction: they may lie, repeat, stall, flood, vanish
// and send anything. Each message is bounded before memory is allocated for it, checked before it
// changes anything, and answered by a rejection that costs nobody else the round. A device that
// reads slowly is disconnected; nothing waits for it.
//
// The coordinator itself is trusted with the sums of shards, and to add the noise (central
// differential privacy); it never sees one device's update. Sums without noise exist from unmasking
// to the end of release, in memory only: not on disk, not in the log, not in a metric. Rosters name
// identities to the peers of a shard unless the job is anonymous (shard.anonymous), and the network
// shows who takes part; each printed guarantee says whom it holds against.
//
// Logs and metrics carry counts, states and short prefixes of identities; never updates, seeds,
// shares or keys.
package coordinator
