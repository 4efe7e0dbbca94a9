package dataset_test

import (
	"fmt"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
)

// Labelled text is read line by line and divided by whom it belongs to, so that
// nobody is on two sides of a split.
func ExampleRead() {
	set, err := dataset.Read(strings.NewReader(`{"text": "two rooms, one bill", "label": "hotel", "user": "ann"}
{"text": "taxi to the airport", "label": "travel", "user": "ann"}
{"text": "one room", "label": "hotel", "user": "bob"}
`), "mail.jsonl")
	if err != nil {
		panic(err)
	}
	names, parts, err := set.Groups()
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Labels)
	for i, name := range names {
		fmt.Println(name, "has", len(parts[i].Examples))
	}

	_, err = dataset.Read(strings.NewReader("{\"text\": \"no label\"}\n"), "mail.jsonl")
	fmt.Println(err)
	// Output:
	// [hotel travel]
	// ann has 2
	// bob has 1
	// mail.jsonl:1: "label" is missing; there are "text"
}
