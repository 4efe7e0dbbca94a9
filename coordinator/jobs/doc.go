// Package jobs runs several jobs over one fleet in one process. It opens and closes their
// coordinators as operators ask, decides whose turn it is, and keeps the fleet's ledger. [Open]
// opens a server's folder, [Host.Run] runs its jobs.
//
//	h, err := jobs.Open(cfg)
//	...
//	err = h.Run(ctx) // opens and closes jobs as operators ask
//
// Each job is a coordinator as if it were alone, with rounds, privacy ledger and checkpoints in a
// folder of its own. The fleet's store (store.OpenShared) holds what they share: who is enrolled in
// which pool, strikes and exclusions, operators, and one ledger in which every round is entered
// before anybody hears of it.
//
// # Pools
//
// An identity enrols in one pool. Jobs of one pool compose: a device in all of them has spent what
// all of them together spent, and the fleet's budget bounds that. Jobs of different pools have no
// identity in common, so that the larger of their costs holds for everybody. This is about
// identities: a person with two identities counts twice.
//
// # Turns
//
// One pool makes one round at a time. A device then takes part in at most one, whatever it sends,
// and nobody can tell who was drawn for one job's round from who is missing in another's, which
// would undo the hiding of participation. The turn goes to the job of the highest priority that has
// the devices for a round, among equals to the one that has waited longest.
//
// # Crashes
//
// A round is reserved in the fleet's ledger before its draw is written to its job's store, and
// settled after it is in the job's ledger. If a process dies in between, the round is settled from
// the job's ledger when the job is opened again; until then it counts as spent. A job whose ledger
// lacks what the fleet's has charged was put back to an older state, and is not opened.
package jobs
