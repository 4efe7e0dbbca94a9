// Package jobs runs several jobs over one fleet in one process: it opens and closes their
// coordinators as operators ask, says whose turn it is, and keeps the fleet's ledger.
//
// Each job is a coordinator as if it were alone, with rounds, privacy ledger and checkpoints
// in a folder of its own. What they share stands in the fleet's store ([store.OpenShared]):
// who is enrolled in which pool, what is held against whom, operators, and one ledger
// in which every round stands before anything of it is said.
//
// # Pools
//
// An identity enrols in one pool. Jobs of one pool compose: who is in all of them
// has what all of them together spent, and the fleet's budget bounds that. Jobs of different
// pools have no identity in common, so that the larger of what each spent holds for
// all. It holds for identities: a person with two of them is two.
//
// # Turns
//
// In one pool one round is made at a time. A device then takes part in one at most,
// whatever it sends; and who is drawn for one job's round cannot be read off who is missing
// in another's, which would undo what hides who took part. The turn goes to the job of the
// highest priority that has the devices for a round, among equals to the one that has waited
// longest.
//
// # Crashes
//
// A round is reserved in the fleet's ledger before its draw is written to its job's store, and
// settled after it stands in the job's ledger. What lies between when a process dies is
// settled when the job is opened again, from the job's ledger; until then it counts as spent.
// A job whose ledger lacks what the fleet's has charged was put back to an older state, and is
// not opened.
package jobs
