// Package accounts keeps a device's accounts (edge.Account), one for each data set, in one folder.
// A data set is recognized by a sample of its examples' keyed hashes. The folder also holds
// identities, proofs of shards' members, and lock files.
package accounts
