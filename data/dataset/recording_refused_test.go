package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
)

// endlessWAV is a WAV file of 8 bits that goes on beyond what a recording may have.
func endlessWAV() []byte {
	const n = audio.MaxSamples + 1
	out := append([]byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data"),
		binary.LittleEndian.AppendUint32(nil, n)...)
	for i := range n {
		out = append(out, byte(i))
	}
	return out
}

// What nothing can be learnt from is refused where data is read, by the file's name and what
// is wrong with it, in a folder of labels as in JSON Lines.
func TestUselessRecordingsAreNamed(t *testing.T) {
	good := tone(t, 400)
	for _, c := range []struct {
		what, name string
		data       []byte
		says       string
	}{
		{"damaged WAV", "bad.wav", good[:len(good)-100], "ends before its samples do"},
		{"damaged FLAC", "bad.flac", []byte("fLaC nothing of it"), "does not begin with its description"},
		{"Ogg", "bad.wav", []byte("OggS\x00\x02"), "convert it first"},
		{"no bytes", "bad.wav", nil, "neither WAV"},
		{"no samples", "bad.wav", good[:44], "ends before its samples do"},
		{"empty", "bad.wav", append(append([]byte(nil), good[:40]...), 0, 0, 0, 0), "no samples"},
		{"silent", "bad.wav", append(good[:44:44], make([]byte, len(good)-44)...), "nothing is heard"},
		{"endless", "bad.wav", endlessWAV(), fmt.Sprint("the limit is ", audio.MaxSamples)},
		{"another kind", "bad.wav", []byte("\x89PNG\r\n\x1a\n"), "neither WAV"},
		{"mp3", "bad.wav", []byte("ID3\x03\x00\x00\x00"), "convert it first"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "yes", c.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, c.data, 0o600),
			os.WriteFile(filepath.Join(dir, "yes", "good.wav"), good, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s in a folder: %v, want %q of %s", c.what, err, c.says, path)
		}
		lines := filepath.Join(dir, "data.jsonl")
		if err := os.WriteFile(lines, fmt.Appendf(nil, `{"audio":"yes/good.wav","label":"yes"}`+"\n"+`{"audio":"yes/%s","label":"yes"}`+"\n", c.name), 0o600); err != nil {
			t.Fatal(err)
		}
		bad := new(LineError)
		if _, err := Load(lines); !errors.As(err, &bad) || bad.Line != 2 || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s in a line: %v, want line 2, %q of %s", c.what, err, c.says, path)
		}
	}
}

// A recording in a folder that is none of a job's labels is told by its own name.
func TestMislabelledRecordingsAreNamed(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "yes", "a.wav"), 90)
	odd := wav(t, filepath.Join(dir, "yess", "b.wav"), 91)
	set, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Relabel([]string{"no", "yes"}); err == nil || !strings.HasPrefix(err.Error(), odd+`: label "yess" is not one of`) {
		t.Errorf("%v, want %s and its label", err, odd)
	}
	if again, err := set.Relabel([]string{"yes", "yess"}); err != nil || len(again.Examples) != 2 {
		t.Errorf("its own labels: %v", err)
	}
}
