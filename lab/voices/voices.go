package voices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/starling-fl/starling/data/audio"
)

// Version numbers the generator: another version makes other recordings from the same settings.
const Version = "starling voices 1"

// Config describes a set.
type Config struct {
	Say      string   `json:"say"`             // SayWords, ...
	Words    []string `json:"words,omitempty"` // in place of those of SayWords
	Speakers int      `json:"speakers"`        // in ten, eight train, one validates, one tests
	Each     int      `json:"each"`            // recordings of each
	Seed     uint64   `json:"seed"`
	Rate     int      `json:"rate"`            // samples a second
	Flite    bool     `json:"flite,omitempty"` // half of those that train have voices of flite
	Program  string   `json:"-"`               // espeak-ng; "": the one that the shell finds
}

// manifest is the file that says what a folder holds.
const manifest = "voices.json"

// Manifest says how a set was made.
type Manifest struct {
	Generator string `json:"generator"`
	Espeak    string `json:"espeak"`
	By        string `json:"flite_version,omitempty"`
	Config
	Voices []Speaker `json:"voices"`
}

// Report describes a folder of recordings.
type Report struct {
	Folder     string `json:"folder"`
	Speakers   int    `json:"speakers"`
	Recordings int    `json:"recordings"`
	Made       int    `json:"made"` // now; the others were there
	Bytes      int64  `json:"bytes"`
	Espeak     string `json:"espeak"`
}

func (c *Config) check() error {
	if _, err := newDealer(c.Say, c.Words); err != nil {
		return err
	}
	if len(c.Words) > 0 {
		if err := CheckWords(c.Words); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name               string
		value, least, most int
	}{{"speakers", c.Speakers, 1, 100_000}, {"each", c.Each, 1, 10_000}, {"rate", c.Rate, 8000, 48_000}} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("voices: %s is %d, want %d..%d", f.name, f.value, f.least, f.most)
		}
	}
	return nil
}

// recording is one of a set.
type recording struct {
	Audio string `json:"audio"` // its path in the folder, with slashes
	Text  string `json:"text,omitempty"`
	Label string `json:"label,omitempty"`
	User  string `json:"user"`
}

// ErrConfig is a setting that cannot be.
var ErrConfig = errors.New("voices: settings")

// Make writes a set to a folder, or what is missing of it: words and digits in a folder for
// each, with lists of what validates and tests, as Speech Commands has them; strings and
// intents as JSON Lines of each part. progress is told how many recordings are there.
func Make(ctx context.Context, c Config, out string, progress func(done, total int)) (*Report, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	e, err := find(ctx, c.Program)
	if err != nil {
		return nil, err
	}
	by := programs{espeak: e}
	m := Manifest{Generator: Version, Espeak: e.version, Config: c, Voices: speakers(c.Seed, c.Speakers, c.Flite)}
	if c.Flite {
		if by.flite, err = findFlite(ctx, "flite"); err != nil {
			return nil, err
		}
		m.By = by.flite.version
	}
	if err := claim(out, m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &Report{Folder: out, Speakers: c.Speakers, Recordings: c.Speakers * c.Each, Espeak: e.version}
	made := make([][]recording, c.Speakers)
	var mu sync.Mutex
	done := 0
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				list, err := c.speaker(ctx, by, out, i, &m.Voices[i], func(fresh bool, size int64) {
					mu.Lock()
					defer mu.Unlock()
					done++
					if r.Bytes += size; fresh {
						r.Made++
					}
					if progress != nil {
						progress(done, r.Recordings)
					}
				})
				if err != nil {
					cancel(err)
					return
				}
				made[i] = list
			}
		})
	}
	for i := range made {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, c.lists(out, m.Voices, made)
}

// claim makes the folder that of the settings, or refuses one that is of others.
func claim(out string, m Manifest) error {
	want, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(out, manifest)
	switch have, err := os.ReadFile(path); {
	case err == nil && bytes.Equal(have, append(want, '\n')):
		return nil
	case err == nil:
		return fmt.Errorf("voices: %s holds recordings of other settings, or of another espeak-ng than %s (%s says which): take another folder",
			out, m.Espeak, manifest)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return fmt.Errorf("voices: %s is not empty and has no %s: take another folder", out, manifest)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return write(path, append(want, '\n'))
}

// write leaves either the whole file or none.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// speaker makes what one speaker says.
func (c *Config) speaker(ctx context.Context, by programs, out string, n int, s *Speaker, done func(fresh bool, size int64)) ([]recording, error) {
	deal, err := newDealer(c.Say, c.Words)
	if err != nil {
		return nil, err
	}
	rng := source(c.Seed, "says "+c.Say, n)
	word := c.Say == SayWords || c.Say == SayDigits
	times := map[string]int{}
	var list []recording
	for i := range c.Each {
		u := deal.next(rng)
		r := recording{Audio: fmt.Sprintf("clips/%s/%d.wav", s.ID, i), Text: u.text, Label: u.label, User: s.ID}
		if word {
			r.Audio = u.label + "/" + s.ID + "_nohash_" + strconv.Itoa(times[u.label]) + ".wav"
			times[u.label]++
		}
		list = append(list, r)
		path := filepath.Join(out, filepath.FromSlash(r.Audio))
		if info, err := os.Stat(path); err == nil {
			done(false, info.Size())
			continue
		}
		data, err := c.say(ctx, by, n, i, s, u.text, word)
		if err == nil {
			err = write(path, data)
		}
		if err != nil {
			return nil, err
		}
		done(true, int64(len(data)))
	}
	return list, nil
}

// programs speak.
type programs struct {
	espeak *espeak
	flite  *flite // nil: nobody speaks by it
}

func (p programs) speak(ctx context.Context, voice string, pitch, speed int, text string) (*audio.Sound, error) {
	if of, ok := strings.CutPrefix(voice, fliteMark); ok {
		return p.flite.speak(ctx, of, pitch, speed, text)
	}
	return p.espeak.speak(ctx, voice, pitch, speed, text)
}

// say is a speaker's recording i, which no other follows from.
func (c *Config) say(ctx context.Context, by programs, n, i int, s *Speaker, text string, word bool) ([]byte, error) {
	rng := source(c.Seed, c.Say+" "+strconv.Itoa(n), i)
	pitch := s.Pitch + int(5*rng.NormFloat64())
	speed := float64(s.Speed) * (1 + 0.1*rng.NormFloat64())
	speech, err := by.speak(ctx, s.Voice, min(99, max(0, pitch)), int(min(260, max(90, speed))), text)
	if err != nil {
		return nil, err
	}
	sound, err := s.recorded(rng, speech, c.Rate, word)
	if err != nil {
		return nil, err
	}
	return audio.EncodeWAV(sound)
}

// lists writes which recordings are of which part.
func (c *Config) lists(out string, voices []Speaker, made [][]recording) error {
	parts := map[string][]recording{}
	for i, v := range voices {
		parts[v.Part] = append(parts[v.Part], made[i]...)
	}
	if c.Say == SayWords || c.Say == SayDigits {
		for part, name := range map[string]string{Validation: "validation_list.txt", Test: "testing_list.txt"} {
			var lines []string
			for _, r := range parts[part] {
				lines = append(lines, r.Audio+"\n")
			}
			slices.Sort(lines)
			if err := write(filepath.Join(out, name), []byte(strings.Join(lines, ""))); err != nil {
				return err
			}
		}
		return nil
	}
	for _, part := range []string{Train, Validation, Test} {
		texts, labels := parts[part], []recording(nil)
		if c.Say == SayIntents { // what is said and what is meant are two tasks' files
			labels, texts = slices.Clone(texts), slices.Clone(texts)
			for i := range texts {
				texts[i].Label, labels[i].Text = "", ""
			}
			if err := writeLines(filepath.Join(out, part+".intents.jsonl"), labels); err != nil {
				return err
			}
		}
		if err := writeLines(filepath.Join(out, part+".jsonl"), texts); err != nil {
			return err
		}
	}
	return nil
}

func writeLines(path string, of []recording) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, r := range of {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return write(path, lines.Bytes())
}
