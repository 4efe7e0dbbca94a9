package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A language's table of MINDS-14 is in text, its recordings below audio.
func TestIntentsAreReadAsMINDS14HasThem(t *testing.T) {
	dir := t.TempDir()
	wav(t, filepath.Join(dir, "audio", "en-US~ADDRESS", "one.wav"), 90)
	wav(t, filepath.Join(dir, "audio", "en-US~PAY_BILL", "two.wav"), 91)
	table := filepath.Join(dir, "text", "en-US.csv")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(table), 0o700), os.WriteFile(table, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const head = "filepath,text_asr,text_translated,intent_class\n"
	write(head + "en-US~ADDRESS/one.wav, \"i moved, yes\",\"I moved, yes\", ADDRESS\nen-US~PAY_BILL/two.wav,pay it,pay it,PAY_BILL\n")
	set, err := Load(table)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Examples) != 2 || strings.Join(set.Labels, " ") != "address pay_bill" || set.Form() != FormRecordings || set.Examples[1].Label != 1 {
		t.Errorf("%+v, labels %q, form %s", set.Examples, set.Labels, set.Form())
	}
	if s, err := set.Examples[1].Recording.Decoded(); err != nil || len(s.Samples) != 91 {
		t.Errorf("%v, %v", s, err)
	}
	// The same rows with what is said, where its column is named.
	said, err := (Columns{Text: "text_asr"}).Load(table)
	if err != nil {
		t.Fatal(err)
	}
	if len(said.Examples) != 2 || said.Form() != FormTranscripts || said.Labels != nil || said.Examples[0].Text != "i moved, yes" || said.Examples[1].Text != "pay it" {
		t.Errorf("%+v, labels %q, form %s", said.Examples, said.Labels, said.Form())
	}
	write(head + "en-US~ADDRESS/one.wav, ,I moved,ADDRESS\n")
	if _, err := (Columns{Text: "text_asr"}).Load(table); err == nil || !strings.Contains(err.Error(), "give what is said") {
		t.Errorf("%v of a transcript that is empty", err)
	}
	bad := new(LineError)
	for name, c := range map[string]struct {
		row, says string
		line      int
	}{
		"climbing":  {"../text/en-US.csv,a,a,ADDRESS\n", "within the folder", 2},
		"absolute":  {"/etc/passwd,a,a,ADDRESS\n", "within the folder", 2},
		"not there": {"en-US~ADDRESS/one.wav,a,a,ADDRESS\nen-US~ADDRESS/three.wav,a,a,ADDRESS\n", "not there", 3},
		"no intent": {"en-US~ADDRESS/one.wav,a,a, \n", "label", 2},
		"short":     {"en-US~ADDRESS/one.wav,a\n", "fields", 2},
		"a quote":   {"en-US~ADDRESS/one.wav,\"a,a,ADDRESS\n", "quote", 2},
	} {
		write(head + c.row)
		if _, err := Load(table); !errors.As(err, &bad) || bad.Line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want line %d and %q", name, err, c.line, c.says)
		}
	}
	// Where a table lies as others unpack the archive.
	for _, at := range []string{"text/text/de.csv", "de.csv"} {
		table = filepath.Join(dir, "other", filepath.FromSlash(at))
		audio := filepath.Join(dir, "other", "audio")
		if at != "de.csv" {
			audio = filepath.Join(audio, "audio")
		}
		wav(t, filepath.Join(audio, "de~X", "one.wav"), 90)
		write("filepath,text_asr,text_translated,intent\nde~X/one.wav,ja,yes,X\n")
		if set, err := Load(table); err != nil || len(set.Examples) != 1 {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// A table that names recordings never reads beyond its folder, and never panics.
func FuzzIntents(f *testing.F) {
	f.Add("a.wav,b,c,D\n")
	f.Add("\"a\n.wav\",b,c,D\n../x,b,c,D\n")
	f.Fuzz(func(t *testing.T, rows string) {
		_, err := Read(strings.NewReader("filepath,text_asr,text_translated,intent_class\n"+rows), filepath.Join("text", "en-US.csv"))
		if err == nil {
			t.Errorf("recordings that are not there: %q", rows)
		}
	})
}

// A folder of recordings that is a link leads where the table's maker has no say.
func TestIntentsBehindALinkAreRefused(t *testing.T) {
	dir, private := t.TempDir(), t.TempDir()
	wav(t, filepath.Join(private, "en-US~ADDRESS", "one.wav"), 90)
	table := filepath.Join(dir, "text", "en-US.csv")
	if err := errors.Join(os.Mkdir(filepath.Dir(table), 0o700), os.Symlink(private, filepath.Join(dir, "audio")),
		os.WriteFile(table, []byte("filepath,text_asr,text_translated,intent_class\nen-US~ADDRESS/one.wav,a,a,ADDRESS\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(table); err == nil || !strings.Contains(err.Error(), "is a link to what is not within") {
		t.Errorf("%v", err)
	}
}
