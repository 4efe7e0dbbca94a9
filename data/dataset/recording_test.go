package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
)

// wav writes a recording of a tone.
func wav(t *testing.T, path string, n int) string {
	t.Helper()
	s := &audio.Sound{Rate: 8000, Samples: make([]float32, n)}
	for i := range s.Samples {
		s.Samples[i] = float32(i%7)/8 - 0.25
	}
	data, err := audio.EncodeWAV(s)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Speech Commands is a folder a word, whose files' names begin with their speaker.
func TestRecordingsAreReadAsSpeechCommandsHasThem(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "yes", "0a7c2a8d_nohash_0.wav"), 90)
	wav(t, filepath.Join(dir, "yes", "b959cd0c_nohash_3.wav"), 91)
	last := wav(t, filepath.Join(dir, "no", "0a7c2a8d_nohash_1.wav"), 92)
	wav(t, filepath.Join(dir, "_background_noise_", "pink_noise.wav"), 93)
	wav(t, filepath.Join(dir, "README.md"), 3)
	set, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Examples) != 3 || strings.Join(set.Labels, " ") != "no yes" || set.Form() != FormRecordings {
		t.Fatalf("%d examples, labels %q, form %s", len(set.Examples), set.Labels, set.Form())
	}
	names, parts, err := set.Groups()
	if err != nil || len(names) != 2 || len(parts[0].Examples) != 2 {
		t.Errorf("speakers %q, %v", names, err)
	}
	first := set.Examples[0].Recording
	if s, err := first.Decoded(); err != nil || len(s.Samples) != 92 || s.Rate != 8000 {
		t.Errorf("%v, %v", s, err)
	}
	wav(t, last, 50)
	if _, err := first.Decoded(); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a file that changed: %v", err)
	}
}

func TestRecordingsAreReadFromJSONLines(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "clips", "a.wav"), 90)
	path := filepath.Join(dir, "data.jsonl")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"audio":"clips/a.wav","label":"yes","user":"u1"}` + "\n" + `{"audio":"clips/a.wav","label":"no","user":7}` + "\n")
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Examples) != 2 || set.Form() != FormRecordings || set.Examples[1].User != "7" || set.Examples[1].Line != 2 {
		t.Errorf("%+v", set.Examples)
	}
	if a, b := set.Examples[0].Recording.Identity(), set.Examples[1].Recording.Identity(); string(a) != string(b) || len(a) != 32 {
		t.Errorf("the same file has identities %x and %x", a, b)
	}
	for name, c := range map[string]struct{ line, says string }{
		"elsewhere": {`{"audio":"../a.wav","label":"x"}`, "within the folder"},
		"absolute":  {`{"audio":"/etc/passwd","label":"x"}`, "within the folder"},
		"missing":   {`{"audio":"b.wav","label":"x"}`, "b.wav"},
		"no path":   {`{"audio":[1],"label":"x"}`, "path of a recording"},
		"no label":  {`{"audio":"clips/a.wav"}`, "label"},
		"no sound":  {`{"audio":"data.jsonl","label":"x"}`, "neither WAV"},
	} {
		write(c.line + "\n")
		bad := new(LineError)
		if _, err := Load(path); !errors.As(err, &bad) || bad.Line != 1 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want line 1 and %q", name, err, c.says)
		}
	}
}

// What is said in a recording is its text, of a line that has no label.
func TestTranscriptsAreReadFromJSONLines(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "clips", "a.wav"), 90)
	path := filepath.Join(dir, "data.jsonl")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"audio":"clips/a.wav","text":"one two","user":"u1"}` + "\n\n" + `{"audio":"clips/a.wav","text":"three","user":7,"provider":"p"}` + "\n")
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	last := set.Examples[1]
	if len(set.Examples) != 2 || set.Form() != FormTranscripts || len(set.Labels) != 0 || last.Text != "three" || last.User != "7" || last.Provider != "p" || last.Line != 3 {
		t.Errorf("%+v", set)
	}
	if s, err := last.Recording.Decoded(); err != nil || len(s.Samples) != 90 {
		t.Errorf("%v, %v", s, err)
	}
	if again, err := set.Relabel(nil); err != nil || again.Form() != FormTranscripts {
		t.Errorf("%v", err)
	}
	if _, err := set.Relabel([]string{"yes", "no"}); err == nil {
		t.Error("texts are taken for labels")
	}
	// A label says what the line is, whatever its text.
	write(`{"audio":"clips/a.wav","label":"yes","text":"one"}` + "\n")
	if set, err = Load(path); err != nil || set.Form() != FormRecordings {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]struct{ lines, says string }{
		"nothing said": {`{"audio":"clips/a.wav","text":" "}`, "text is empty"},
		"no text":      {`{"audio":"clips/a.wav","text":["one"]}`, "must be a string"},
		"nul":          {`{"audio":"clips/a.wav","text":"a\u0000"}`, "not text"},
		"mixed":        {`{"audio":"clips/a.wav","text":"a"}` + "\n" + `{"audio":"clips/a.wav","label":"a"}`, "others a label"},
	} {
		write(c.lines + "\n")
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestAFolderHoldsOneKind(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "a", "1.wav"), 20)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "b"), 0o700), os.WriteFile(filepath.Join(dir, "b", "1.pgm"), []byte("P2 1 1 1 1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "one kind") {
		t.Errorf("images and recordings: %v", err)
	}
}

// A recording of a page is read whenever it is used, and held to what every recording is.
func TestDeferredRecordings(t *testing.T) {
	sound := &audio.Sound{Rate: 8000, Samples: []float32{0, 0.5}}
	var failed error
	r := DeferredRecording(func() (*audio.Sound, error) { return sound, failed })
	if got, err := r.Decoded(); err != nil || got != sound {
		t.Errorf("%v, %v", got, err)
	}
	if r.Identity() != nil {
		t.Error("it has an identity that nobody has read")
	}
	sound = &audio.Sound{Rate: 8000, Samples: make([]float32, 9)}
	if _, err := r.Decoded(); !errors.Is(err, audio.ErrSilent) {
		t.Errorf("a silent one: %v", err)
	}
	failed = errors.New("gone")
	if _, err := r.Decoded(); !errors.Is(err, failed) {
		t.Errorf("one that is gone: %v", err)
	}
}
