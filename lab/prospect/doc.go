// Package prospect says what a fleet can afford before there is one: it finds the columns of a data file, writes a job
// file for the fleet, and simulates what accuracy which epsilon would come to on that file.
package prospect
