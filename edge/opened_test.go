package edge

import (
	"crypto/sha256"
	"runtime"
	"testing"
)

// Edges of one process hold one base between them.
func TestBaseIsOpenedOnce(t *testing.T) {
	blob, err := tinyBase(t).Blob()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(blob)
	one, err := openBlob(sum, blob)
	if err != nil {
		t.Fatal(err)
	}
	two, err := openBlob(sum, append([]byte(nil), blob...))
	if err != nil || one != two {
		t.Errorf("two bases of one blob: %v", err)
	}
	if _, err := openBlob([32]byte{1}, []byte("no base")); err == nil {
		t.Error("what is no base was opened")
	}
	runtime.KeepAlive(one)
}
