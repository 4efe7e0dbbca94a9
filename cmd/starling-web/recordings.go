//go:build js && full

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"syscall/js"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/web/client"
)

// recorded are a page's recordings. Each stays where the browser has it until a step's
// rows are made of it; the speaker of one that is named as in Speech Commands is its user.
func recorded(list js.Value, name string) (*dataset.Set, error) {
	n := list.Length()
	if n > maxBlobs {
		return nil, fmt.Errorf("%s: %d recordings, want at most %d", name, n, maxBlobs)
	}
	examples, labels, spoken := make([]dataset.Example, n), make([]string, n), 0
	for i := range n {
		at := list.Index(i)
		file := text(at.Get("name"))
		r, err := recording(at.Get("recording"), cmp.Or(file, "recording "+strconv.Itoa(i+1)))
		if err != nil {
			return nil, err
		}
		labels[i] = text(at.Get("label"))
		examples[i] = dataset.Example{Recording: r, Text: text(at.Get("text")), User: cmp.Or(text(at.Get("user")), dataset.Speaker(file)),
			Provider: text(at.Get("provider"))}
		if examples[i].Text != "" {
			spoken++
		}
	}
	switch {
	case spoken == 0:
	case spoken < n:
		return nil, fmt.Errorf("%s: %d of %d recordings say what is said in them, want all or none", name, spoken, n)
	default:
		return &dataset.Set{Examples: examples}, nil
	}
	return dataset.Named(name, examples, labels)
}

// recording is one that is read and decoded when it is asked for: by what every device
// decodes with, not by the browser, whose decoders resample by filters of their own.
func recording(blob js.Value, name string) (*dataset.Recording, error) {
	if blob.Type() != js.TypeObject || blob.Get("arrayBuffer").Type() != js.TypeFunction {
		return nil, fmt.Errorf("%s: a recording is a Blob of a WAV or FLAC file", name)
	}
	return dataset.DeferredRecording(func() (*audio.Sound, error) {
		if size := blob.Get("size"); size.Type() != js.TypeNumber || size.Float() > audio.MaxFile {
			return nil, fmt.Errorf("%s: more than %d bytes", name, audio.MaxFile)
		}
		got, err := wait(blob.Call("arrayBuffer"))
		if err != nil {
			return nil, fmt.Errorf("%s: the browser does not read it: has it changed since it was chosen? %w", name, err)
		}
		s, err := audio.Decode(octets(js.Global().Get("Uint8Array").New(got)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return s, nil
	}), nil
}

// heard is what a page shows of a recording, which it decodes: what cannot be used is told
// before anything is joined. Of other examples it is nil.
func heard(e dataset.Example, at int, p *client.Preview) (*client.Sound, error) {
	if e.Recording == nil {
		return nil, nil
	}
	s, err := e.Recording.Decoded()
	if err != nil {
		return nil, err
	}
	if p.Shortest == nil || s.Seconds() < p.Shortest.Seconds {
		p.Shortest = &client.Lasting{At: at, Seconds: s.Seconds()}
	}
	if p.Longest == nil || s.Seconds() > p.Longest.Seconds {
		p.Longest = &client.Lasting{At: at, Seconds: s.Seconds()}
	}
	return &client.Sound{Seconds: s.Seconds(), Peaks: peaks(s)}, nil
}

// mostPeaks is how many moments a page draws.
const mostPeaks = 96

// peaks are how loud a recording is over time, its loudest being 255.
func peaks(s *audio.Sound) []uint8 {
	n := min(mostPeaks, len(s.Samples))
	loud, most := make([]float64, n), 0.0
	for i, v := range s.Samples {
		at := i * n / len(s.Samples)
		loud[at] = max(loud[at], math.Abs(float64(v)))
		most = max(most, loud[at])
	}
	out := make([]uint8, n)
	for i, v := range loud {
		out[i] = uint8(255 * v / most) // which is no silence: see audio.Check
	}
	return out
}

// sampleWords is how many words a sample has.
const sampleWords = 40

// words are of a speaker who is no other sample's.
func words(n int) (string, error) {
	set, err := dataset.Spoken(1, "sample "+strconv.Itoa(n), 1, sampleWords)
	if err != nil {
		return "", err
	}
	type word struct {
		Label string `json:"label"`
		User  string `json:"user"`
		WAV   []byte `json:"wav"`
	}
	list := make([]word, len(set.Examples))
	for i, e := range set.Examples {
		s, err := e.Recording.Decoded()
		if err != nil {
			return "", err
		}
		wav, err := audio.EncodeWAV(s)
		if err != nil {
			return "", err
		}
		list[i] = word{set.Labels[e.Label], e.User, wav}
	}
	var b bytes.Buffer
	err = json.NewEncoder(&b).Encode(list)
	return b.String(), err
}
