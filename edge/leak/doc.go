// Package leak tries, before a device joins a job, what one of its updates would reveal about its
// examples. [Check] makes updates from texts that it knows, as the device would make and send them,
// and plays a coordinator that sees one of them alone because it has invented all the other devices
// of the sum.
//
//	r, err := leak.Check(ctx, settings, leak.Options{})
//
// What is tried: which rows of an embedding table, or of a masked token's scores, have moved; how
// many examples of each label the head's gradient is made of (Zhao, Mopuri, Bilen 2020, "iDLG";
// Wainakh et al. 2022, "User-Level Label Leakage from Gradients"); whose embeddings are in the span
// of the first layer's gradient, which is a sum of outer products with that layer's inputs
// (Boenisch et al. 2023, "When the Curious Abandon Honesty"; Petrov et al. 2024, "DAGER"); and
// which text's gradient has the same direction (Zhu, Liu, Han 2019, "Deep Leakage from Gradients";
// with the cosine of Geiping et al. 2020 and tokens in place of embeddings, as in Balunović et al.
// 2022, "LAMP").
//
// Threat model. What is found is there; what is not found may be there as well: these are a few
// attacks of bounded effort. The bound is the device's own noise (docs/privacy/proofs.md, section 14). A
// coordinator can craft a base that reveals the owner's texts and not these: see Options.Data.
// Base, program and job come from the coordinator and run within the limits of a round.
package leak
