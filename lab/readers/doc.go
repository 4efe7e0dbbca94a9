// Package readers holds only tests: they read what the core writes with programs of others, and so
// keep those programs out of what a user of the core downloads.
package readers
