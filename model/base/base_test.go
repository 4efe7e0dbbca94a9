package base

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
)

// blobSHA256 is the SHA-256 of the embedded base's blob, and so its address. A
// base that `make base` has remade needs the new value here.
const blobSHA256 = "a1c4f36d36e7e0fef0f7e5483f7e11f9f2567e136f96e07336ba9f4621aac834"

// maxBytes is the most that the base may add to the binary.
const maxBytes = 2 << 20

func TestDefaultIsWhatWasMade(t *testing.T) {
	b, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(blob)); got != blobSHA256 {
		t.Errorf("the base's SHA-256 is %s, want %s", got, blobSHA256)
	}
	if got := strings.TrimSpace(Generator); got != dataset.GeneratorVersion {
		t.Errorf("the base was trained on %s, the generator is now %s: run make base", got, dataset.GeneratorVersion)
	}
	size := 0
	err = fs.WalkDir(files, "default", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += int(info.Size())
		return err
	})
	if err != nil || size > maxBytes {
		t.Errorf("%d bytes embedded, limit %d (%v)", size, maxBytes, err)
	}
}

// documentsSHA256 is blobSHA256 of the base for documents, which `make documents` makes.
const documentsSHA256 = "27281a590b2538ef0582ea3d25678b6d7e97ac272a63fcac69f3a28bfdae3391"

// maxDocuments is the most that it may add to the binary.
const maxDocuments = 900 << 10

func TestDocumentsAreWhatWasMade(t *testing.T) {
	b, err := Documents()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(blob)); got != documentsSHA256 || len(blob) > maxDocuments {
		t.Errorf("the base for documents has %d bytes and the SHA-256 %s, want %s", len(blob), got, documentsSHA256)
	}
	if got := strings.TrimSpace(DocumentsGenerator); got != dataset.DocumentsVersion {
		t.Errorf("the base was trained on %s, the generator is now %s: run make documents", got, dataset.DocumentsVersion)
	}
	if !b.Config.Generates() || b.Config.T5.Boxes == 0 {
		t.Errorf("%+v", b.Config)
	}
	if _, err := tokenizer.ParseFor(b.Tokenizer, b.Config.VocabSize, b.Config.PadTokenID); err != nil {
		t.Error(err)
	}
}

func TestDefaultTokenizerFits(t *testing.T) {
	b, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(b.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	if tok.VocabSize() != b.Config.VocabSize || tok.PadID() != 0 {
		t.Errorf("tokenizer has %d entries and pad id %d, the base %d", tok.VocabSize(), tok.PadID(), b.Config.VocabSize)
	}
	// The tokenizer is the one that the public corpus gives: text of the
	// trade stays whole.
	for _, word := range strings.Fields("invoice total due company said profit") {
		if ids := tok.Encode(word); len(ids) != 1 || ids[0] == tok.UnknownID() {
			t.Errorf("%q takes %d tokens", word, len(ids))
		}
	}
}
