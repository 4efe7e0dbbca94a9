package store

import (
	"database/sql"
	"strings"
	"testing"
)

// TestFullDisk: where a write finds no room the error says of which file.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Task: "full"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.db.postgres {
		t.Skip("a server's disk is its own")
	}
	if _, err := s.db.Exec(`PRAGMA max_page_count = 1`); err != nil { // as many as there are, and none more
		t.Fatal(err)
	}
	err = s.tx(func(tx *sql.Tx) error { return setMeta(tx, "large", strings.Repeat("x", 1<<20)) })
	if err == nil || !strings.Contains(err.Error(), FileName) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("a write without room: %v", err)
	}
}
