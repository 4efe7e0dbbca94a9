// Package sim runs a fleet of real devices in one process against a real
// coordinator, over real sockets on the loopback interface. It is what
// `starling demo` and `starling bandwidth` run and what tests of the whole
// system use.
//
// Devices follow scripts: one may vanish, lose its connection, be slow or be
// hostile at a given turn of a given round (Fault). Every byte is counted where
// it crosses the device's socket, and told apart by what it was for (Traffic);
// nothing is estimated from sizes of tensors.
//
// Nothing is simulated but the fleet's being in one place: messages,
// masking, training programs and noise are those of separate machines. The
// devices share the machine's cores through one trainer.
package sim
