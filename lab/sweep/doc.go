// Package sweep makes simulations from settings, one or a grid of them, and keeps
// what they come to: a folder a run, from which an interrupted grid goes on, and
// one tidy table of all of them.
package sweep
