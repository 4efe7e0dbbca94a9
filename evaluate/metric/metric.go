// Package metric holds what a released adapter is measured by, for those who measure and
// those who only read what came out.
package metric

// Score is how an adapter does on public data.
type Score struct {
	Accuracy float64 // in [0, 1]; of words transcribed 1 less their error rate, which may be below 0
	// Loss is the mean cross-entropy of the right labels in nats, over what Accuracy
	// is a mean over; 0 where the evaluator has none.
	Loss float64
	// Of is how many documents it was measured on, for who states how sure it is; 0 where
	// the evaluator does not say.
	Of int
}

// RankAccuracy is how the released adapter, cut to a rank, does on public
// validation data. What devices lose in training is theirs: it never comes here.
type RankAccuracy struct {
	Rank     int     `json:"rank"`
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss,omitempty"` // validation loss, see Score; 0: none
	Of       int     `json:"of,omitempty"`   // documents that it was measured on; 0: not known
}
