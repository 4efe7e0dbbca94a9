// Package edge is the device's side of Starling: it joins a coordinator, takes part in rounds,
// trains on local data, and sends nothing but a clipped, quantized and masked update.
//
// Most programs need three calls. [LoadIdentity] reads the device's key, and makes one if there is
// none. [Run] joins with an invitation and takes part until the job is finished:
//
//	key, err := edge.LoadIdentity("identity")
//	...
//	err = edge.Run(ctx, edge.Config{Token: token, Identity: key, Data: edge.Examples(set)})
//
// If the job asks for more than the device's owner allows, Run fails and [PolicyErrors] lists what
// it asks for: show that to the owner, pass what the owner accepts to [Config.Allow], and call Run
// again. Config.Trained receives the finished model, whose [Trained.Predict] needs no network.
// [Ask] shows what a job would do before anybody joins it.
//
// A round follows docs/PROTOCOL.md: check the plan, advertise keys, share secrets while training,
// upload the masked update, confirm the set of survivors, reveal shares. Package secagg does the
// aggregation, dp the clipping and noise, quant the quantization; [Contribute] is that arithmetic
// without a network. The training step is a program that the coordinator compiled and that this
// package runs in the sandbox of package wasm.
//
// # Concurrency
//
// Run owns all state of the client in one goroutine. It starts others to read a connection, to
// prepare the job (base weights, local data) and to train in a round. Each of them returns one
// result over a channel, and Run waits for it.
//
// # Threat model
//
// The coordinator may lie about anything it sends, and must not learn a single device's update. The
// device checks: the protocol version; the coordinator's proof over the enrolment secret and the
// job; every blob against its hash and size; that a plan belongs to the job, is newer than every
// round answered, stays within the job's constants and this device's own limits, and fits the
// layout of the base; that a program's inputs, state and frozen tensors are exactly those of the
// assignment; that a turn seen twice is the same; and, through secagg, that roster, survivor set
// and confirmations are signed by the shard under this device's own plan hash. It refuses a shard
// below its own floor. This package cannot check whether the coordinator adds the noise it claims,
// nor whether the other devices of a shard are real people's.
//
// Text and labels never leave the device: refusals carry fixed texts, and no metric of local
// training is reported.
package edge
