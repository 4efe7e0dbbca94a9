//go:build !js

package edge

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// Edges of one process hold one base between them.
func TestBaseIsOpenedOnce(t *testing.T) {
	blob, err := tinyBase(t).Blob()
	if err != nil {
		t.Fatal(err)
	}
	name := ref(blob)
	one, err := openBlob(name, bytes.NewReader(blob))
	if err != nil {
		t.Fatal(err)
	}
	two, err := openBlob(name, bytes.NewReader(append([]byte(nil), blob...)))
	if err != nil || one != two {
		t.Errorf("two bases of one blob: %v", err)
	}
	if _, err := openBlob(ref([]byte("no base")), strings.NewReader("no base")); err == nil {
		t.Error("what is not a base was opened")
	}
	runtime.KeepAlive(one)
}
