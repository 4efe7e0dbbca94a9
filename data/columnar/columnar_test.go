//go:build !js

package columnar

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// read gives the rows of a file.
func read(name string, data []byte, each func(int, []byte) error) error {
	if filepath.Ext(name) == ".parquet" {
		return Parquet(bytes.NewReader(data), int64(len(data)), each)
	}
	return Arrow(bytes.NewReader(data), each)
}

// Files of pyarrow hold the rows that it says they do: those in testdata, and others in STARLING_TABLES
// (lab/bench/interop/tables.py FOLDER 50).
func TestTables(t *testing.T) {
	dir := cmp.Or(os.Getenv("STARLING_TABLES"), "testdata")
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		base := filepath.Base(file)
		if filepath.Ext(base) == ".jsonl" {
			continue
		}
		tried++
		name, _, _ := strings.Cut(strings.TrimSuffix(base, filepath.Ext(base)), "-")
		lines := bytes.Split(bytes.TrimSpace(must(t, filepath.Join(dir, name+".jsonl"))), []byte("\n"))
		n := 0
		err := read(base, must(t, file), func(row int, object []byte) error {
			var got, want any
			if err := json.Unmarshal(object, &got); err != nil {
				t.Fatalf("%s: row %d is no JSON: %v: %.200s", base, row, err, object)
			}
			if err := json.Unmarshal(lines[row-1], &want); err != nil {
				t.Fatal(err)
			}
			if n++; n != row || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: row %d is\n%s, want\n%s", base, row, object, lines[row-1])
			}
			return nil
		})
		if err != nil || n != len(lines) {
			t.Errorf("%s: %d rows of %d: %v", base, n, len(lines), err)
		}
	}
	if tried < 9 {
		t.Errorf("%d files", tried)
	}
}

func must(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A damaged file gives an error or rows, each of JSON and bounded.
func damagedFile(t *testing.T, name string, data []byte) {
	stop := errors.New("enough")
	_ = read(name, data, func(row int, object []byte) error {
		if !json.Valid(object) || len(object) > MaxRow {
			t.Fatalf("row %d: %.200s", row, object)
		}
		if row == 1000 {
			return stop
		}
		return nil
	})
}

func FuzzParquet(f *testing.F) { fuzzFiles(f, ".parquet") }

func FuzzArrow(f *testing.F) { fuzzFiles(f, ".arrow") }

func fuzzFiles(f *testing.F, ext string) {
	files, err := filepath.Glob("testdata/*" + ext)
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		f.Add(must(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) { damagedFile(t, ext, data) })
}

// Each byte of a file may be another.
func TestDamage(t *testing.T) {
	for _, name := range []string{"t0-0.parquet", "t2-4.parquet", "t1.arrow"} {
		data := must(t, filepath.Join("testdata", name))
		step := 1 + len(data)/1500
		for at := 0; at < len(data); at += step {
			for _, x := range []byte{0xff, 0x80, 1} {
				bad := bytes.Clone(data)
				bad[at] ^= x
				damagedFile(t, name, bad)
			}
		}
		for cut := 0; cut < len(data); cut += 97 {
			damagedFile(t, name, data[:cut])
		}
	}
}
