// Package membership attacks a released model: whose documents was it trained on? [Run] makes all
// attacks on a list of [Unit], each of which holds what the model says about one provider's
// documents.
//
//	r, err := membership.Run(units, membership.Config{})
//
// The attacks are those of Tito et al. 2023 (provider membership inference, section 5.2). What a
// model says about a provider's documents is reduced to a few means. A clustering without knowledge
// (AZK), a random forest that knows some of the providers (APK), or these together with the
// memorization test (the hard votes) then separate members from others. Beside them stand two plain
// thresholds (Yeom et al. 2018; the loss compared with the base's) and, if there are shadow models,
// the likelihood ratio of Carlini et al. 2022 (LiRA).
//
// Two controls are attacked in the same way: the base, which has seen none of the documents, and
// members drawn at random. If the first does better than chance, members and others differ without
// any training; if the second does, the attack is wrong.
//
// The package works on numbers, not on models: evaluate.Examiner computes them.
package membership
