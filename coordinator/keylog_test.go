package coordinator

import (
	"bytes"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Between rounds who comes is shown the head that the witness has signed, and where it has
// signed none that of all who are enrolled.
func TestHeadAtJoining(t *testing.T) {
	c, err := New(Config{Job: tinyJob(4), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, signed := range []bool{true, false} {
		c.keys.signed = signed
		before := bytes.Clone(c.keys.note)
		if _, err := c.store.Enrol([32]byte{byte(i + 1)}, 0); err != nil {
			t.Fatal(err)
		}
		var answer wire.Enrolled
		if err := c.showLog([32]byte{byte(i + 1)}, 0, &answer); err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(answer.Head, before); same != signed || len(before) == 0 {
			t.Errorf("signed %v: %s is shown, and there was %s", signed, answer.Head, before)
		}
	}
}
