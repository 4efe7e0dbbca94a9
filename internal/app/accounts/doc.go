// Package accounts keeps on a device what its user's data has given, and under which identity:
// one folder of accounts (edge.Account) for all data sets, each known again by a sample of its
// examples' keyed hashes; who was in its shards; and the files that one process at a time holds.
package accounts
