package dataset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/internal/testkit/realdata"
)

// entryOf is an archive's: a file unless kind says otherwise.
type entryOf struct {
	name string
	kind byte
	data []byte
	size int64 // that its header says; 0: that of data
}

// tarred is an archive of entries, compressed.
func tarred(t testing.TB, entries ...entryOf) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: max(e.size, int64(len(e.data))), Mode: 0o644}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Linkname = "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close() // complains of what is missing where size says more
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tone is a recording's file.
func tone(t testing.TB, n int) []byte {
	t.Helper()
	s := &audio.Sound{Rate: 8000, Samples: make([]float32, n)}
	for i := range s.Samples {
		s.Samples[i] = float32(i%9)/9 - 0.4
	}
	data, err := audio.EncodeWAV(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestArchivesHoldRecordings(t *testing.T) {
	data := tarred(t, entryOf{name: "recordings/", kind: tar.TypeDir}, entryOf{name: "./recordings/7_ana_0.wav", data: tone(t, 90)},
		entryOf{name: "recordings/0_ben_12.wav", data: tone(t, 91)}, entryOf{name: "recordings/7_ben_1.wav", data: tone(t, 92)},
		entryOf{name: "README.md", data: []byte("read me")}, entryOf{name: "x/_background_noise_/hum.wav", data: tone(t, 5)})
	set, err := Read(bytes.NewReader(data), "digits.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, e := range set.Examples {
		s, err := e.Recording.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		said += fmt.Sprint(set.Labels[e.Label], e.User, len(s.Samples), " ")
	}
	if want := "7ana90 0ben91 7ben92 "; said != want || set.Form() != FormRecordings {
		t.Errorf("%q, want %q, form %s", said, want, set.Form())
	}
	words, err := Read(bytes.NewReader(tarred(t, entryOf{name: "yes/0a_nohash_0.wav", data: tone(t, 90)}, entryOf{name: "no/0a_nohash_0.wav", data: tone(t, 80)})), "w.tgz")
	if err != nil || strings.Join(words.Labels, " ") != "no yes" || words.Examples[0].User != "0a" {
		t.Errorf("folders of labels: %+v, %v", words, err)
	}
}

// What somebody else packed writes nothing anywhere, takes what the bound says, and says what
// is wrong with it.
func TestHostileArchivesAreRefused(t *testing.T) {
	good := tone(t, 90)
	for name, c := range map[string]struct {
		entries []entryOf
		says    string
	}{
		"climbing":    {[]entryOf{{name: "../7_ana_0.wav", data: good}}, "within the archive"},
		"inside out":  {[]entryOf{{name: "a/../../7_ana_0.wav", data: good}}, "within the archive"},
		"absolute":    {[]entryOf{{name: "/tmp/7_ana_0.wav", data: good}}, "within the archive"},
		"a link":      {[]entryOf{{name: "7_ana_0.wav", kind: tar.TypeSymlink}}, "link"},
		"a hard link": {[]entryOf{{name: "7_ana_0.wav", kind: tar.TypeLink}}, "link"},
		"a device":    {[]entryOf{{name: "7_ana_0.wav", kind: tar.TypeChar}}, "device"},
		"twice":       {[]entryOf{{name: "7_ana_0.wav", data: good}, {name: "7_ana_0.wav", data: good}}, "twice"},
		"nameless":    {[]entryOf{{name: "sound.wav", data: good}}, "DIGIT_SPEAKER_NUMBER"},
		"no sound":    {[]entryOf{{name: "7_ana_0.wav", data: []byte("no")}}, "neither WAV"},
		"cut off":     {[]entryOf{{name: "7_ana_0.wav", data: good[:60]}}, "ends before"},
		"silent":      {[]entryOf{{name: "7_ana_0.wav", data: append(good[:44:44], make([]byte, 180)...)}}, "nothing is heard"},
		"empty":       {[]entryOf{{name: "notes.txt", data: good}}, "no examples"},
		"lists":       {[]entryOf{{name: "set/testing_list.txt", data: []byte("yes/a.wav")}}, "unpack"},
		"huge":        {[]entryOf{{name: "7_ana_0.wav", data: good, size: audio.MaxFile + 1}}, "the limit is"},
		"a bomb":      {[]entryOf{{name: "zeros.bin", data: make([]byte, 1<<20)}, {name: "7_ana_0.wav", data: good}}, "more than 0 MiB"},
	} {
		most := 1 << 29
		if name == "a bomb" {
			most = 1 << 19
		}
		if _, err := readArchive(bytes.NewReader(tarred(t, c.entries...)), "a.tar.gz", most); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := Read(strings.NewReader("plain"), "a.tar.gz"); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("no archive: %v", err)
	}
}

// The set of shared/data: twelve recordings of each digit by each of six speakers, from the
// archive or from where it was unpacked.
func TestSpokenDigits(t *testing.T) {
	path := realdata.Path(t, "fsdd/fsdd_subset.tar.gz")
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range set.Examples {
		counts[e.User]++
		counts["label "+set.Labels[e.Label]]++
	}
	if len(set.Examples) != 720 || len(counts) != 16 || counts["yweweler"] != 120 || counts["label 7"] != 72 {
		t.Errorf("%d examples, %v", len(set.Examples), counts)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(z)
	for n := 0; n < 30; {
		h, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		n++
		var file bytes.Buffer
		if _, err := file.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unpacked, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{} // by hash
	for _, e := range set.Examples {
		first[string(e.Recording.Identity())] = set.Labels[e.Label] + e.User
	}
	for _, e := range unpacked.Examples {
		if got, want := unpacked.Labels[e.Label]+e.User, first[string(e.Recording.Identity())]; got != want {
			t.Errorf("unpacked it is of %s, in the archive of %s", got, want)
		}
	}
}

// Reading an archive never panics, and takes memory by what it holds.
func FuzzArchive(f *testing.F) {
	f.Add(tarred(f, entryOf{name: "7_ana_0.wav", data: tone(f, 20)}))
	f.Add(tarred(f, entryOf{name: "yes/0a_nohash_0.wav", data: tone(f, 20)}, entryOf{name: "d/", kind: tar.TypeDir}))
	f.Add(tarred(f, entryOf{name: "x", kind: tar.TypeSymlink}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		set, err := readArchive(bytes.NewReader(data), "a.tar.gz", 1<<20)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
			t.Errorf("%d bytes allocated", got)
		}
		if err == nil {
			for _, e := range set.Examples {
				if _, err := e.Recording.Decoded(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
