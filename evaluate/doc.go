// Package evaluate scores adapters on labelled examples (Labelled) and on questions with
// known answers (Questions): accuracy, F1, perplexity, ANLS. Both are evaluators of a
// coordinator's rounds. What they score is public or held out: no device's data ever
// reaches one.
package evaluate
