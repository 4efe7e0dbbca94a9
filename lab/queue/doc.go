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
// Items and results are sealed (AES-256-GCM) under keys derived from the run's, which the
// operator gives to workers with the queue's URL and which never reaches the cluster: who
// reads and writes there without it learns how many items there are and how long, and can
// stop a run, but neither reads examples nor forges a result. Base, program and start lie
// in the open, under hashes that items name.
//
// A worker has the key: it reads its items' examples, and may send any result that its
// items' clients can come to. Beyond these bounds results are refused and their items
// handed out again; within them a share, drawn when they are there, is computed again by
// the simulating process, and one that differs ends the run with the name that its worker
// gave itself.
package queue
