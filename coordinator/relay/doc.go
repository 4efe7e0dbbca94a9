// Package relay carries devices' connections over NATS to the process that owns their jobs.
//
// A gateway listens where devices dial, and holds nothing: no key, no job, no session. Each
// connection is a stream of its own in one link to the owner, who ends TLS: a [Listener], as any
// other of package server's. If the owner dies its streams end; devices dial again, and their
// gateway passes them to the new owner.
//
// # Subjects
//
//	starling.owner                     an owner says once a second that it is one
//	starling.open.GATEWAY.OWNER        a gateway asks for a link
//	starling.up.GATEWAY.OWNER.LINK     bytes of a link from the gateway
//	starling.down.GATEWAY.LINK         bytes of a link to it
//
// So that NATS can be told what each may do: gateway g publishes to starling.open.g.> and
// starling.up.g.>, and subscribes to starling.owner and starling.down.g.>; owners the reverse,
// with * for g.
//
// NATS delivers at most once. A message of a link says where in the link's bytes it stands, so
// that one that was lost ends the link: what devices sent is never read with a hole in it.
//
// # Frames
//
// A message of a link is a kind, a number of 8 bytes, and frames; each of these is a kind, its
// stream in 4 bytes, a length in 4, and so many bytes. A stream's data is bounded by what the
// other end has granted (credit), so that one that is not read stands alone; what comes is given
// to its stream where NATS hands it over, and nothing waits. Streams that have something to say
// take turns. Streams are numbered upwards, and a frame of one that is over is passed over.
//
// # Threat model
//
// A gateway that lies, or anyone who has taken one over, can do what a network between devices and
// the owner can: see who speaks when and how much, delay, drop, and end connections. It cannot
// read or change a byte of TLS, nor another gateway's links. Where a device's connection comes
// from is its gateway's word: limits of addresses hold as far as gateways are honest. What it
// sends the owner is bounded: links, streams of each, bytes of each that are not read.
package relay
