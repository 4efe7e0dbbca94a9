package voices

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/audio"
)

// ErrNoFlite names the missing program and its source.
var ErrNoFlite = errors.New("voices: flite, which half of those that train are to speak by, is not there: install it, as by `apt-get install flite`")

// fliteMark is before the voices of flite.
const fliteMark = "flite "

// fliteVoices are those that flite has built in. Each was made of what one person read aloud
// for it, where espeak-ng computes its voices by rule; kal's other one is of 8 kHz.
var fliteVoices = []string{"awb", "kal16", "rms", "slt"}

// flite is the program of that name, Carnegie Mellon University's.
type flite struct {
	path    string
	version string // as it says it
}

func findFlite(ctx context.Context, name string) (*flite, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoFlite, err)
	}
	f := &flite{path: path}
	said, _ := exec.CommandContext(ctx, path, "--version").Output() // it exits with 1 after that
	_, after, ok := strings.Cut(string(said), "version: ")
	f.version, _, _ = strings.Cut(after, "\n")
	if !ok || !strings.HasPrefix(f.version, "flite") || len(f.version) > 100 {
		return nil, fmt.Errorf("voices: %s says that it is %.100q, want flite", path, said)
	}
	list, err := run(ctx, path, "-lv")
	if err != nil {
		return nil, err
	}
	for _, v := range fliteVoices {
		if !slices.Contains(strings.Fields(string(list)), v) {
			return nil, fmt.Errorf("voices: %s has no voice %s: want version 2.2 with all its voices", f.version, v)
		}
	}
	return f, nil
}

// speak is a text by a voice, at pitch and speed of espeak-ng's measures.
func (f *flite) speak(ctx context.Context, voice string, pitch, speed int, text string) (*audio.Sound, error) {
	dir, err := os.MkdirTemp("", "starling-voices-") // it goes back in its file to say the length
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "said.wav")
	set := func(name string, value float64) string { return name + "=" + strconv.FormatFloat(value, 'f', 3, 64) }
	if _, err := run(ctx, f.path, "-voice", voice, "--setf", set("f0_shift", math.Exp2(float64(pitch-50)/60)),
		"--setf", set("duration_stretch", 150/float64(speed)), "-t", text, "-o", file); err != nil {
		return nil, err
	}
	out, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := audio.Decode(out)
	if err != nil {
		return nil, fmt.Errorf("voices: %s says %q: %w", voice, text, err)
	}
	return s, nil
}
