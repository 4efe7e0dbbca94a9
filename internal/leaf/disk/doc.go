// Package disk says how much room is left.
package disk
