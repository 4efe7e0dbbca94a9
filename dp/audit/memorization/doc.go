// Package memorization asks a model for what was removed: a question about a document from which
// every match of the answer is gone (Tito et al. 2023, section 5.1). What the model still answers
// correctly it remembers from training, or infers from what is left. Providers that it was not
// trained on show how much is inferred.
//
//	redacted, found, left := memorization.Redact(example, []string{"Acme Ltd"})
//
// [Redact] removes the answers, from words and from the page's picture; [Compare] compares members with others. Pixels in a
// base's own patches stay as they are, since nothing here knows where in them an answer stands, and reports say so.
package memorization
