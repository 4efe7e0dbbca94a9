package coordinator

import (
	"crypto/sha256"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Devices are told where the base is published, and the hash of the tokenizer that it has.
func TestJobSaysWhereItsBaseIs(t *testing.T) {
	cfg := Config{Job: tinyJob(4), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}}
	cfg.BaseName, cfg.BaseRevision = "org/name", "0123456789abcdef0123456789abcdef01234567"
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	j, err := wire.ParseJob(c.jobBytes)
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Published{Name: cfg.BaseName, Revision: cfg.BaseRevision, Tokenizer: sha256.Sum256(cfg.Base.Tokenizer)}
	if j.Published != want {
		t.Errorf("%+v, want %+v", j.Published, want)
	}
}
