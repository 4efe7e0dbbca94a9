// Package membership attacks a released model: whose documents was it trained on?
//
// The attacks are those of Tito et al. 2023 (provider membership inference, section 5.2): what a
// model says of a provider's documents is brought to a few means, and a clustering without
// knowledge (AZK), a random forest that knows some of the providers (APK), or these with the
// memorization test (the hard votes) tell members from others. Beside them stand two plain
// thresholds (Yeom et al. 2018; the loss against the base's) and, where shadow models are at
// hand, the likelihood ratio of Carlini et al. 2022 (LiRA).
//
// Two controls are attacked the same way: the base, which has seen none of the documents, and
// members drawn at random. If the first is told from chance, members and others differ without
// any training; if the second is, the attack is wrong.
//
// The package knows numbers alone, not models: see evaluate.Examiner for where they come from.
package membership
