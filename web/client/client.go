// Package client holds what the browser's edge (cmd/starling-web) answers its page, as
// JSON; web/typescript makes the page's types of it.
//
//	var job client.Quote // as the page reads it
package client

// Preview describes a source, for its owner to look at before joining.
type Preview struct {
	// Kind is "texts", "lists" (texts, each with any number of labels), "unlabelled" (texts too), "prompts" (with completions), "words" (each with a label), "questions"
	// (about documents), "pictures", "recordings" or "transcripts" (recordings, each with what is said in it).
	Kind     string `json:"kind"`
	Examples int    `json:"examples"`
	// Labels has the most frequent first: those of words where these have them, none of questions.
	Labels []LabelCount `json:"labels"`
	// Rows are the first of the file; of pictures one of each label.
	Rows []Row `json:"rows"`
	// Groups is the number of users or providers that the source names; 0 if it names none.
	Groups int `json:"groups"`
	// Shortest and Longest are the recordings that last the least and the most; left out of
	// other data.
	Shortest *Lasting `json:"shortest,omitempty"`
	Longest  *Lasting `json:"longest,omitempty"`
}

// Lasting is the length of a recording of the source.
type Lasting struct {
	At      int     `json:"at"` // its place in the source, from 0
	Seconds float64 `json:"seconds"`
}

// LabelCount is the number of times that a label occurs.
type LabelCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Sound is a recording to look at.
type Sound struct {
	Seconds float64 `json:"seconds"`
	// Peaks are how loud it is from one moment to the next, of its loudest 255, in base64.
	Peaks []uint8 `json:"peaks"`
}

// Row is an example to look at.
type Row struct {
	// Label is the answer of a question; empty for words, and if there is none.
	Label string `json:"label"`
	// Text is cut: a question is before its document, a label behind its word.
	Text    string   `json:"text"`
	Picture *Picture `json:"picture,omitempty"` // in place of a text
	Sound   *Sound   `json:"sound,omitempty"`   // in place of a text
}

// Picture is a picture to look at, of its own proportions.
type Picture struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	// Pixels are red, green, blue and 255 of each, row by row, in base64.
	Pixels []uint8 `json:"pixels"`
}

// Given has the contributions of the data to one job, as seen from this device.
type Given struct {
	// ID is what the job is known by, its TaskID in hexadecimal; the name may be another's,
	// too, and is escaped.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Promised is the rounds that the job announced; beyond them the device stops.
	Promised uint64 `json:"promised"`
	// Contributed is the rounds in which an update was handed over.
	Contributed uint64 `json:"contributed"`
	// Committed is of these what the coordinator said it released.
	Committed uint64 `json:"committed"`
	// Last is when, in seconds since 1970.
	Last int64 `json:"last"`
	// Epsilon and Delta are what all of it costs if the noise is as announced; left out
	// where none is.
	Epsilon float64 `json:"epsilon,omitempty"`
	Delta   float64 `json:"delta,omitempty"`
	// Untrusted is Epsilon if everybody else lies, by the noise that this device added itself,
	// Bits the most that could then be told of the data, and ExampleBits about any one example of it;
	// left out where it added none.
	Untrusted   float64 `json:"untrusted,omitempty"`
	Bits        float64 `json:"bits,omitempty"`
	ExampleBits float64 `json:"example_bits,omitempty"`
	// Up and Down are bytes sent and received.
	Up   int64 `json:"up,omitempty"`
	Down int64 `json:"down,omitempty"`
	// History has the contributions over time, the oldest first.
	History []GivenBy `json:"history,omitempty"`
	// Forgotten tells that its owner has had the job forgotten: its name and history are gone.
	Forgotten bool `json:"forgotten,omitempty"`
}

// GivenBy has the contributions to a job up to a moment.
type GivenBy struct {
	At     int64  `json:"at"`     // seconds since 1970
	Rounds uint64 `json:"rounds"` // in which an update was handed over
	Up     int64  `json:"up"`     // bytes sent
	Down   int64  `json:"down"`   // bytes received
}

// Quote is the cost of a round of a job on this device, tried before joining with made-up weights and examples.
type Quote struct {
	Step   float64 `json:"step_seconds"`  // of one batch
	Start  float64 `json:"start_seconds"` // once
	Memory int64   `json:"memory_bytes"`  // of the training program, the base's weights included
}

// Limits is what the device says of a job before its owner has joined, see edge.Verdict.
type Limits struct {
	// Beyond are the limits of the policy that the job is beyond, which accept takes by key and have.
	Beyond []Limit `json:"beyond"`
	// Granted tells that the owner has accepted all of them before, for this data and coordinator.
	Granted bool `json:"granted,omitempty"`
	// ExampleBits bounds what all rounds of the job could tell about any one example, and Bits
	// about all of the data, although everybody else lies; left out where nothing does.
	ExampleBits float64 `json:"example_bits,omitempty"`
	Bits        float64 `json:"bits,omitempty"`
}

// Limit is one limit of the policy, see edge.PolicyError.
type Limit struct {
	Key  string `json:"key"`  // of the policy
	What string `json:"what"` // what is asked for
	Why  string `json:"why"`  // what it would mean for the owner
	Have string `json:"have"` // asked for, as accept takes it
	Want string `json:"want"` // the limit
}

// Prediction is one thing that a model says of an example: of each label, the likeliest
// first; of each word its likeliest label; or the likeliest answer.
type Prediction struct {
	Word string `json:"word,omitempty"` // whose label it is
	// Label is empty for an answer that is not in the document.
	Label string `json:"label"`
	// Probability is a softmax, not calibrated.
	Probability float64 `json:"probability"`
}
