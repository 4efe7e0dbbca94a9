package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One data set is in one job at a time, whatever identity it is given under.
func TestHostileTwoJobsAtOnce(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "a.tsv")
	if err := os.WriteFile(data, []byte("x\ty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(folder, "one.pem")
	_, release, err := takeAccount(identity, data)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := takeAccount(filepath.Join(folder, "two.pem"), filepath.Join(folder, ".", "a.tsv")); err == nil || !strings.Contains(err.Error(), "one job at a time") {
		t.Errorf("%v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	_, release, err = takeAccount(identity, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// A token need not stand in the list of processes.
func TestTokenFromElsewhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("starling2_abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{"@" + file: "starling2_abc", "-": "starling2_def", "starling1_x": "starling1_x"} {
		if got, err := readToken(strings.NewReader(" starling2_def \n"), where); err != nil || got != want {
			t.Errorf("%s: %q, %v", where, got, err)
		}
	}
	if _, err := readToken(nil, "@"+file+"x"); err == nil {
		t.Error("a file that is not there")
	}
}
