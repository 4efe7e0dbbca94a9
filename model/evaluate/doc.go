// Package evaluate scores adapters on labelled examples ([Labelled]) and on questions with known
// answers ([Questions]): accuracy, F1, perplexity, ANLS. Both implement metric.Evaluator. They
// are for data that is public or held out: no device's data ever reaches one.
//
//	f1 := evaluate.TokenF1("12 May", []string{"12 May 2024"}) // .8
package evaluate
