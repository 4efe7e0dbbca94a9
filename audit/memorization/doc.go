// Package memorization asks a model for what was removed: a question about a document from which
// every match of its answer is gone (Tito et al. 2023, section 5.1). What is still answered
// rightly was remembered from training, or follows from what is left. Providers that were not
// trained on say how much the latter is.
//
// Text alone is looked at. A picture of the page, where a base reads one, stays as it is: nothing
// here knows where in it an answer stands, and reports say so.
package memorization
