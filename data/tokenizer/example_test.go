package tokenizer_test

import (
	"fmt"
	"slices"

	"github.com/starling-fl/starling/data/tokenizer"
)

// A WordPiece vocabulary is learned from text, saved as Hugging Face does, and
// read again.
func Example() {
	learned, err := tokenizer.Train(slices.Values([]string{"low lower lowest", "new newer newest"}), 40)
	if err != nil {
		panic(err)
	}
	file, err := learned.MarshalJSON()
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.Parse(file)
	if err != nil {
		panic(err)
	}
	ids := tok.EncodeFixed("lowest newest", 8)
	fmt.Println(len(ids), "ids, the rest is padding:", ids[7] == 0)
	fmt.Println(tok.Decode(ids))
	// Output:
	// 8 ids, the rest is padding: true
	// lowest newest
}
