package voices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
)

// standIn makes this test's binary speak as espeak-ng does: the tests of what is made of
// speech need no program of others.
const standIn = "STARLING_VOICES_STAND_IN"

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		if filepath.Base(os.Args[0]) == "flite" {
			os.Exit(fliteInstead(os.Args[1:]))
		}
		speakInstead(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// speakInstead writes a tone for each letter, whose pitch is the letter's and the voice's.
func speakInstead(args []string) {
	switch {
	case args[0] == "--version":
		fmt.Println("eSpeak NG text-to-speech: 1.51  Data at: nowhere")
		return
	case args[0] == "--voices=variant":
		for _, v := range slices.Concat(lists().variants, lists().heldOut) {
			if v != os.Getenv(standIn) {
				fmt.Println(" 5  variant --/M x !v/" + v)
			}
		}
		return
	case args[0] == "--voices=en":
		fmt.Println(strings.Join(lists().accents, "\n"))
		return
	}
	data := tones(args[len(args)-1], float64(len(args[1])), 22_050)
	copy(data[40:], "\x00\xf0\xff\x7f") // as espeak-ng says what it does not know yet
	_, _ = os.Stdout.Write(data)
}

// fliteInstead speaks as flite does, and exits with what flite exits with.
func fliteInstead(args []string) int {
	switch args[0] {
	case "--version":
		fmt.Println("  Carnegie Mellon University\n  version: flite-2.2-current Sep 2018 (http://cmuflite.org)")
		return 1
	case "-lv":
		fmt.Println("Voices available:", strings.Join(fliteVoices[strings.Count(os.Getenv(standIn), "lost"):], " "))
		return 0
	}
	if err := os.WriteFile(args[len(args)-1], tones(args[len(args)-3], 50*float64(len(args[1])), 16_000), 0o600); err != nil {
		panic(err)
	}
	return 0
}

// tones are a WAV file of a tone for each letter.
func tones(text string, above float64, rate int) []byte {
	s := &audio.Sound{Rate: rate}
	for _, letter := range text {
		hz := 200 + 20*float64(letter-'a') + above
		for i := range 2000 {
			s.Samples = append(s.Samples, float32(0.4*math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
		}
	}
	data, err := audio.EncodeWAV(s)
	if err != nil {
		panic(err)
	}
	return data
}

// speaks makes a set by the stand-in.
func speaks(t *testing.T, c Config, out string) *Report {
	t.Helper()
	t.Setenv(standIn, "all")
	c.Program = os.Args[0]
	r, err := Make(t.Context(), c, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files are those of a folder, by their paths in it.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The same settings make the same files, and a command given again makes what is missing, to
// the same bytes.
func TestASeedIsASet(t *testing.T) {
	c := Config{Say: SayWords, Speakers: 10, Each: 4, Seed: 3, Rate: 8000}
	a, b := t.TempDir(), t.TempDir()
	if r := speaks(t, c, a); r.Recordings != 40 || r.Made != 40 || r.Bytes < 40*1000 {
		t.Errorf("%+v", r)
	}
	speaks(t, c, b)
	want := files(t, a)
	if len(want) != 40+3 {
		t.Fatalf("%d files, want 40 recordings, two lists and what says how they were made", len(want))
	}
	check := func(what, dir string) {
		t.Helper()
		got := files(t, dir)
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Errorf("%s: %s differs", what, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d files, want %d", what, len(got), len(want))
		}
	}
	check("the same settings", b)
	gone := 0
	for name := range want {
		if strings.HasSuffix(name, "_nohash_0.wav") && gone < 7 {
			gone++
			if err := os.Remove(filepath.Join(b, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := speaks(t, c, b); r.Made != gone || gone != 7 || r.Recordings != 40 {
		t.Errorf("%d were gone: %+v", gone, r)
	}
	check("what was missing", b)

	c.Seed = 4
	c.Program = os.Args[0]
	if _, err := Make(t.Context(), c, b, nil); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("another seed in the same folder: %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), c, foreign, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder of somebody's: %v", err)
	}
}

// Speakers of one part are none of another's, nor have those that test a voice of those that
// train; a thousand and a half differ.
func TestSpeakersDiffer(t *testing.T) {
	const n = 1503
	parts, ids, sounds := map[string]int{}, map[string]bool{}, map[string]string{}
	voice := map[string]string{}
	for _, s := range speakers(1, n, false) {
		parts[s.Part]++
		ids[s.ID] = true
		_, variant, _ := strings.Cut(s.Voice, "+")
		tests := s.Part != Train
		if slices.Contains(lists().heldOut, variant) != tests || slices.Contains(lists().variants, variant) == tests {
			t.Fatalf("%s has voice %s", s.Part, s.Voice)
		}
		of := fmt.Sprint(s.Voice, s.Pitch, s.Speed, s.Throat)
		if other, ok := sounds[of]; ok {
			t.Errorf("%s and %s sound alike", other, s.ID)
		}
		sounds[of] = s.ID
		voice[s.Voice] = s.Part
	}
	if len(ids) != n || parts[Train] != 1203 || parts[Validation] != 150 || parts[Test] != 150 {
		t.Errorf("%d speakers, parts %v", len(ids), parts)
	}
	if len(voice) < 400 {
		t.Errorf("%d voices of espeak-ng, want at least 400", len(voice))
	}
	if a, b := speakers(1, 5, false), speakers(1, 50, false); !slices.Equal(a, b[:5]) {
		t.Error("who a speaker is depends on how many there are")
	}
}

// With flite half of those that train speak by it, by each of its voices; everybody else says
// the same as without it, in the same voice.
func TestHalfSpeakByFlite(t *testing.T) {
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "flite")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	c := Config{Say: SayDigits, Speakers: 20, Each: 2, Seed: 3, Rate: 8000}
	without, with := t.TempDir(), t.TempDir()
	speaks(t, c, without)
	c.Flite = true
	speaks(t, c, with)
	by, old := map[string]int{}, speakers(3, 20, false)
	want, got := files(t, without), files(t, with)
	for i, s := range speakers(3, 20, true) {
		of, ok := strings.CutPrefix(s.Voice, fliteMark)
		if ok {
			by[of]++
		}
		if ok && s.Part != Train || !ok && s != old[i] || s.ID != old[i].ID {
			t.Errorf("%+v was %+v", s, old[i])
		}
		for name := range want {
			if strings.Contains(name, s.ID) && bytes.Equal(got[name], want[name]) == ok {
				t.Errorf("%s of %s: as without flite is %v", name, s.Voice, !ok)
			}
		}
	}
	if len(by) != len(fliteVoices) || by["awb"] != 2 {
		t.Errorf("flite's voices speak for %v", by)
	}
	if !bytes.Contains(got[manifest], []byte("flite-2.2-current")) || len(got) != len(want) {
		t.Errorf("%d files, %s", len(got), got[manifest][:300])
	}
	t.Setenv(standIn, "lost")
	if _, err := findFlite(t.Context(), "flite"); err == nil || !strings.Contains(err.Error(), "no voice awb") {
		t.Errorf("a flite without a voice: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	c.Program = os.Args[0]
	if _, err := Make(t.Context(), c, t.TempDir(), nil); !errors.Is(err, ErrNoFlite) || !strings.Contains(err.Error(), "apt-get install flite") {
		t.Errorf("no flite: %v", err)
	}
}

// Of strings and intents each part is a file of JSON Lines, whose recordings are there.
func TestLinesNameWhatIsSaid(t *testing.T) {
	for _, say := range []string{SayStrings, SayIntents} {
		dir := t.TempDir()
		speaks(t, Config{Say: say, Speakers: 10, Each: 14, Seed: 1, Rate: 16_000}, dir)
		users, labels := map[string]string{}, map[string]int{}
		for _, part := range []string{Train, Validation, Test} {
			data, err := os.ReadFile(filepath.Join(dir, part+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				var r recording
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				sound, err := os.ReadFile(filepath.Join(dir, r.Audio))
				if err != nil {
					t.Fatal(err)
				}
				if s, err := audio.Decode(sound); err != nil || s.Rate != 16_000 {
					t.Fatalf("%s: %v, %v", r.Audio, s, err)
				}
				if other, ok := users[r.User]; ok && other != part {
					t.Errorf("%s is of %s and %s", r.User, other, part)
				}
				users[r.User] = part
				if r.Label != "" {
					t.Errorf("%s has a label beside its text", r.Audio)
				}
				if n := len(strings.Fields(r.Text)); say == SayStrings && (n < 3 || n > 7) || r.Text != strings.ToLower(r.Text) || strings.ContainsAny(r.Text, "{|}") {
					t.Errorf("%q is said", r.Text)
				}
			}
		}
		if say == SayIntents {
			for _, part := range []string{Train, Validation, Test} {
				set, err := dataset.Load(filepath.Join(dir, part+".intents.jsonl"))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range set.Examples {
					labels[set.Labels[e.Label]]++
				}
			}
		}
		if want := map[string]int{SayStrings: 0, SayIntents: 14}[say]; len(users) != 10 || len(labels) != want {
			t.Errorf("%s: %d users, labels %v", say, len(users), labels)
		}
	}
}

// Templates name no letters that a transcript in the model's alphabet has not.
func TestIntentsAreLettersAndSpaces(t *testing.T) {
	if len(lists().intents) != 14 {
		t.Errorf("%d intents, want MINDS-14's", len(lists().intents))
	}
	for label, list := range lists().intents {
		for _, template := range list {
			rng := source(1, template, 0)
			for range 50 {
				if text := chosen(rng, template); strings.Trim(text, "abcdefghijklmnopqrstuvwxyz ") != "" || strings.Contains(text, "  ") {
					t.Fatalf("%s: %q", label, text)
				}
			}
		}
	}
}

func TestWhatCannotBeMadeIsRefused(t *testing.T) {
	t.Setenv(standIn, "all")
	good := Config{Say: SayDigits, Speakers: 2, Each: 2, Seed: 1, Rate: 8000, Program: os.Args[0]}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"kind":      {func(c *Config) { c.Say = "songs" }, "say is"},
		"speakers":  {func(c *Config) { c.Speakers = 0 }, "speakers is 0, want 1.."},
		"each":      {func(c *Config) { c.Each = 1 << 20 }, "each is"},
		"rate":      {func(c *Config) { c.Rate = 4000 }, "rate is 4000"},
		"list":      {func(c *Config) { c.Words = []string{"a", "b"} }, "list of words"},
		"paths":     {func(c *Config) { c.Say, c.Words = SayWords, []string{"../x", "b"} }, "small letters"},
		"twice":     {func(c *Config) { c.Say, c.Words = SayWords, []string{"b", "b"} }, "twice"},
		"one word":  {func(c *Config) { c.Say, c.Words = SayWords, []string{"b"} }, "want 2.."},
		"no espeak": {func(c *Config) { c.Program = filepath.Join(t.TempDir(), "espeak-ng") }, "apt-get install espeak-ng"},
	} {
		bad := good
		c.change(&bad)
		_, err := Make(t.Context(), bad, t.TempDir(), nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if wrong := errors.Is(err, ErrConfig); wrong == (name == "no espeak") {
			t.Errorf("%s: a usage error: %v", name, wrong)
		}
	}
	t.Setenv(standIn, "m5")
	if _, err := Make(t.Context(), good, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "no voice !v/m5") {
		t.Errorf("a program without a voice: %v", err)
	}
	t.Setenv(standIn, "all")
	ctx, cancel := context.WithCancel(t.Context())
	good.Speakers = 500
	if _, err := Make(ctx, good, t.TempDir(), func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Where espeak-ng itself is there, every voice says every word so that it is heard.
func TestEspeakItselfSpeaks(t *testing.T) {
	e, err := find(t.Context(), "")
	if errors.Is(err, ErrNoProgram) {
		t.Skip("NO ESPEAK-NG: it is not installed here, so the stand-in alone is tested")
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range slices.Concat(lists().variants, lists().heldOut) {
		voice := lists().accents[i%len(lists().accents)] + "+" + v
		s, err := e.speak(t.Context(), voice, 50, 150, "seven")
		if err != nil || s.Seconds() < 0.2 || s.Seconds() > 3 {
			t.Errorf("%s: %v", voice, err)
		}
	}
}

// What varies a recording keeps it one that is heard, of about its length.
func TestVariedRecordingsAreHeard(t *testing.T) {
	s := &audio.Sound{Rate: 8000, Samples: make([]float32, 4000)}
	for i := range s.Samples {
		s.Samples[i] = float32(0.3 * math.Sin(float64(i)/5))
	}
	want := slices.Clone(s.Samples)
	rng := source(1, "test", 0)
	last := 0
	for range 200 {
		v := Varied(rng, s)
		if err := v.Check(); err != nil {
			t.Fatal(err)
		}
		if n := len(v.Samples); n < 3200 || n > 6800 {
			t.Fatalf("%d samples of 4000", n)
		} else if last != 0 && n != last {
			last = -1
		} else if last == 0 {
			last = n
		}
	}
	if last >= 0 {
		t.Error("every one is as long as the first")
	}
	if !slices.Equal(s.Samples, want) {
		t.Error("the recording itself has changed")
	}
	crack := &audio.Sound{Rate: 8000, Samples: slices.Clone(s.Samples)} // louder than all else
	crack.Samples[2000] = 9
	for range 200 {
		if n := len(Varied(rng, crack).Samples); n < 3200 {
			t.Fatalf("%d samples of 4000 with a crack", n)
		}
	}
	short := Varied(rng, &audio.Sound{Rate: 8000, Samples: []float32{0.1, -0.1}})
	if err := short.Check(); err != nil {
		t.Errorf("two samples: %v", err)
	}
}
