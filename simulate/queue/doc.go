// Package queue lets several processes and machines make one simulation, over
// NATS JetStream.
//
// The process that simulates draws the rounds, cuts each cohort into items of a
// few clients, and publishes them to a work queue; base, program and start lie in
// an object store under their SHA-256. Workers are stateless: they take an item,
// let its clients contribute, publish the sum of their symbols, and only then
// acknowledge. An item whose worker died is given to another; the first result of
// each item counts, and sums of integers do not depend on who made them, so that
// killing workers changes nothing in what comes out. Noise is drawn where the
// rounds are, only there.
//
// Items carry the clients' examples. The queue, its store and every worker belong
// to whoever simulates: nothing here protects the data from them, and a worker
// that lies spoils the result.
package queue
