package dataset

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/realdata"
)

// CIFAR-10's bytes are images: planes of red, green and blue under the ten labels, and a
// folder of batches is all of them but the test batch.
func TestCIFARBatches(t *testing.T) {
	train, test := realdata.Path(t, "cifar10_subset/train_batch.bin.gz"), realdata.Path(t, "cifar10_subset/test_batch.bin.gz")
	f, err := os.Open(train)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(train)
	if err != nil || len(s.Examples) != 1000 || !slices.Equal(s.Labels, cifarLabels[:]) {
		t.Fatalf("%d examples of %q, %v", len(s.Examples), s.Labels, err)
	}
	perLabel := map[int]int{}
	for i, e := range s.Examples {
		perLabel[e.Label]++
		record := raw[i*3073:][:3073]
		if e.Label != int(record[0]) || e.Line != i+1 {
			t.Fatalf("record %d has the label %d at %d", i, e.Label, e.Line)
		}
		if i%97 > 0 {
			continue
		}
		m, err := e.Image.Decoded()
		if err != nil || m.Width != 32 || m.Height != 32 || m.Channels != 3 {
			t.Fatalf("record %d: %+v, %v", i, m, err)
		}
		for at, v := range record[1:] {
			if math.Abs(float64(m.Pixels[at])-float64(v)/255) > 1e-6 {
				t.Fatalf("record %d has %v at %d, want %v", i, m.Pixels[at], at, float64(v)/255)
			}
		}
	}
	for label, n := range perLabel {
		if n != 100 {
			t.Errorf("%d images of label %d", n, label)
		}
	}
	whole, err := Load(filepath.Dir(train))
	if err != nil || len(whole.Examples) != 1000 {
		t.Fatalf("the folder: %v", err)
	}
	tested, err := Load(test)
	if err != nil || len(tested.Examples) != 500 {
		t.Fatalf("the test batch: %v", err)
	}
	if bytes.Equal(whole.Examples[0].Image.Identity(), tested.Examples[0].Image.Identity()) {
		t.Error("the folder has its test batch's images")
	}
	seen := 0
	err = Columns{}.Images(bytes.NewReader(raw[:2*3073]), "two.bin", func(at int, m *Image) error {
		seen = at
		_, err := m.Decoded()
		return err
	})
	if err != nil || seen != 2 {
		t.Errorf("images to predict: %d, %v", seen, err)
	}
}

func TestBatchesThatAreNone(t *testing.T) {
	good := make([]byte, 3073)
	for name, data := range map[string][]byte{
		"record 2 ends after 100 of 3073 bytes":  append(slices.Clone(good), good[:100]...),
		"record 1 has the label 10, want 0 to 9": append([]byte{10}, good[1:]...),
	} {
		if _, err := Read(bytes.NewReader(data), "x.bin"); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "CIFAR-10") {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

const twoTweets = `"0","1467810369","Mon Apr 06 22:19:45 PDT 2009","NO_QUERY","_TheSpecialOne_","@switchfoot http://twitpic.com/2y1zl - Awww, that's a ""bummer""."` + "\n" +
	`"4","1467822272","Tue Apr 07 01:02:03 PDT 2009","NO_QUERY","caf` + "\xe9" + `","d` + "\xe9" + `j` + "\xe0" + ` vu, "twice" you know"` + "\n"

// Tweets keep their user, their quotes and what their old encoding said.
func TestSentiment140(t *testing.T) {
	s, err := Read(strings.NewReader(twoTweets), "training.1600000.processed.noemoticon.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Examples) != 2 || !slices.Equal(s.Labels, []string{"negative", "positive"}) {
		t.Fatalf("%d of %q", len(s.Examples), s.Labels)
	}
	one, two := s.Examples[0], s.Examples[1]
	if one.User != "_TheSpecialOne_" || !strings.HasSuffix(one.Text, `that's a "bummer".`) || one.Label != 0 || one.Line != 1 {
		t.Errorf("%+v", one)
	}
	if two.User != "café" || two.Text != `déjà vu, "twice" you know` || two.Label != 1 || two.Line != 2 {
		t.Errorf("%+v", two)
	}
	if got := unicoded("déjà"); got != "déjà" {
		t.Errorf("UTF-8 became %q", got)
	}
	// Its columns by name are another table.
	if _, err := (Columns{Text: "x"}).Read(strings.NewReader(twoTweets), "x.csv"); err == nil {
		t.Error("a named column was found in a file without a header")
	}
	for bad, says := range map[string]string{
		`"3","1","Mon Apr 06 22:19:45 PDT 2009","q","u","t"`: `x.csv:3: polarity "3"`,
		`"0","1","yesterday","q","u","t"`:                    `x.csv:3: date "yesterday"`,
		`"0","1","Mon Apr 06 22:19:45 PDT 2009","q","u"`:     "x.csv:3: 5 columns",
		`"0","1","Mon Apr 06 22:19:45 PDT 2009","q","u"," "`: "x.csv:3: text is empty",
	} {
		if _, err := Read(strings.NewReader(twoTweets+bad+"\n"), "x.csv"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Both files of the scanned digits are images of 8 x 8 under the same ten labels.
func TestScannedDigits(t *testing.T) {
	for name, n := range map[string]int{"optdigits/optdigits.tra.gz": 3823, "optdigits/optdigits.tes.gz": 1797} {
		s, err := Load(realdata.Path(t, name))
		if err != nil || len(s.Examples) != n || len(s.Labels) != 10 || s.Examples[0].Image.Width != 8 {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func FuzzBatches(f *testing.F) {
	f.Add(make([]byte, 3073))
	f.Add(append(bytes.Repeat([]byte{9}, 3073), 10))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(bytes.NewReader(data), "x.bin")
		if err != nil {
			return
		}
		if len(s.Examples)*3073 != len(data) {
			t.Errorf("%d examples of %d bytes", len(s.Examples), len(data))
		}
		for _, e := range s.Examples {
			if m, err := e.Image.Decoded(); err != nil || m.Check() != nil {
				t.Fatal(m, err)
			}
		}
	})
}

func FuzzSentiment140(f *testing.F) {
	f.Add(twoTweets)
	f.Add(`"2","1","Mon Apr 06 22:19:45 PDT 2009","q","` + "\xff" + `","a"b"` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Read(strings.NewReader(twoTweets+text), "x.csv"); err == nil {
			for _, e := range s.Examples {
				if strings.TrimSpace(e.Text) == "" || e.Text != strings.ToValidUTF8(e.Text, "") || e.Label >= len(s.Labels) {
					t.Fatalf("unusable: %+v", e)
				}
			}
		}
	})
}
