package voices

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/audio"
)

// ErrNoProgram names the missing program and its source.
var ErrNoProgram = errors.New("voices: espeak-ng, which speaks, is not there: install it, as by `apt-get install espeak-ng`, " +
	"`dnf install espeak-ng` or `brew install espeak-ng`, or name it by --espeak")

// espeak is the program that speaks.
type espeak struct {
	path    string
	version string // as it says it
}

// find looks for the program and for the voices that speakers have.
func find(ctx context.Context, name string) (*espeak, error) {
	if name == "" {
		name = "espeak-ng"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoProgram, err)
	}
	e := &espeak{path: path}
	out, err := run(ctx, path, "--version")
	if err != nil {
		return nil, err
	}
	e.version, _, _ = strings.Cut(string(out), "  ")
	if !strings.Contains(e.version, "eSpeak NG") || len(e.version) > 100 {
		return nil, fmt.Errorf("voices: %s says that it is %.100q, want eSpeak NG", path, e.version)
	}
	for list, want := range map[string][]string{"variant": slices.Concat(lists().variants, lists().heldOut), "en": lists().accents} {
		out, err := run(ctx, path, "--voices="+list)
		if err != nil {
			return nil, err
		}
		there := strings.Fields(string(out))
		for _, name := range want {
			if list == "variant" {
				name = "!v/" + name
			}
			if !slices.Contains(there, name) {
				return nil, fmt.Errorf("voices: %s has no voice %s: want version 1.51 or a newer one with all its voices", e.version, name)
			}
		}
	}
	return e, nil
}

// run is what a program writes.
func run(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("voices: %s %s: %w: %.200s", path, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// speak is a text by a voice, at the program's rate.
func (e *espeak) speak(ctx context.Context, voice string, pitch, speed int, text string) (*audio.Sound, error) {
	out, err := run(ctx, e.path, "-v", voice, "-p", strconv.Itoa(pitch), "-s", strconv.Itoa(speed), "--stdout", "--", text)
	if err != nil {
		return nil, err
	}
	const length = 40 // where the header says a length that it does not know yet
	if len(out) < length+4 || string(out[length-4:length]) != "data" {
		return nil, fmt.Errorf("voices: %s wrote %d bytes that are no WAV file", e.path, len(out))
	}
	binary.LittleEndian.PutUint32(out[length:], math.MaxUint32)
	s, err := audio.Decode(out)
	if err != nil {
		return nil, fmt.Errorf("voices: %s says %q: %w", voice, text, err)
	}
	return s, nil
}
