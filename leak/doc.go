// Package leak tries, before a device joins a job, what one of its updates would show of
// its examples: it makes updates of texts that it knows, as the device would make and send
// them, and plays the coordinator that sees one of them alone, since it has invented all
// the others of the sum.
//
// What is tried: which rows of an embedding table, or of a masked token's scores, have
// moved; how many examples of each label the head's gradient is of (Zhao, Mopuri, Bilen
// 2020, "iDLG"; Wainakh et al. 2022, "User-Level Label Leakage from Gradients"); whose
// embeddings lie in the span of the first layer's gradient, which is a sum of outer products
// with that layer's inputs (Boenisch et al. 2023, "When the Curious Abandon Honesty"; Petrov
// et al. 2024, "DAGER"); and which text's gradient has the same direction (Zhu, Liu, Han
// 2019, "Deep Leakage from Gradients"; with the cosine of Geiping et al. 2020 and tokens in
// place of embeddings, as in Balunović et al. 2022, "LAMP").
//
// Threat model. What is found is there; what is not found may be: these are a few attacks of
// bounded effort, not a bound. The bound is the device's own noise (docs/PRIVACY.md, section
// 14). A coordinator that makes its base for the purpose can make one that shows the
// owner's texts and not these: see Options.Data. Base, program and job come from it and
// are run within the limits that a round is run within.
package leak
