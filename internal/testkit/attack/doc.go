// Package attack is a second implementation of the protocol, of both sides, for
// those who lie. It was written from docs/PROTOCOL.md alone and imports nothing of
// this project, so that what it can do the document says, and what it cannot do the
// document leaves out: the standard library, and the library that carries WebSocket
// messages. Curve arithmetic is on big integers, slow and short; thresholds come
// from exact fractions.
//
// A Device enrols and takes part; each of its turns is a step of its own, whose
// bytes the caller may change, keep back or send twice. A Coordinator announces a
// job, assigns plans and plays a shard's other members.
//
// The tests that aim it at a real coordinator and a real device lie with the
// commands that they attack, in lab/cmd/starling.
package attack
