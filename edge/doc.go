// Package edge is the device's side of Starling: it joins a coordinator, takes
// part in rounds, trains on local data, and sends nothing but a clipped,
// quantized and masked update.
//
// Most programs need three calls. [LoadIdentity] reads the device's key, and
// makes one where there is none. [Run] joins with an invitation and takes part
// until the job is finished:
//
//	key, err := edge.LoadIdentity("identity")
//	...
//	err = edge.Run(ctx, edge.Config{Token: token, Identity: key, Data: edge.Examples(set)})
//
// Where it ends because the job asks for more than the device's owner allows,
// [PolicyErrors] lists what: show it to the owner, pass what is accepted to
// [Config.Allow], and Run again. Config.Trained gets the finished model, whose
// [Trained.Predict] needs no network. [Ask] shows what a job would do before
// anybody joins, and [Contribute] is the arithmetic of a round alone.
//
// The order of a round is that of docs/PROTOCOL.md: check the plan, advertise
// keys, share secrets while training, upload the masked update, confirm the
// survivor set, reveal shares. The aggregation itself is package secagg's, the
// clip dp's, the lattice quant's; the training step is a program that the
// coordinator compiled and this package runs through package wasm.
//
// # Concurrency
//
// Run owns all state of the client in one goroutine. It starts others for
// reading a connection, for preparing the job (base weights, local data) and
// for a round's training; each of them hands back one result over a channel
// and is waited for.
//
// # Threat model
//
// The coordinator is not trusted with a single device's update and may lie
// about anything it sends. The device checks: the protocol version; the
// coordinator's proof over the enrolment secret and the job; every blob against
// its hash and size; that a plan belongs to the job, is newer than every round
// answered, stays within the job's constants and this device's own limits, and
// fits the layout of the base; that a program's inputs, state and frozen
// tensors are exactly those of the assignment; that a turn seen twice is the
// same; through secagg, that roster, survivor set and confirmations are signed
// by the shard under this device's own plan hash. A shard below the device's
// floor is refused. What this package cannot check is whether the coordinator
// adds the noise it claims, and whether the shard's peers are real.
//
// Text and labels never leave: refusals carry fixed texts, and no metric of
// local training is reported.
package edge
