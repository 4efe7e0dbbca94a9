package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// Rate and length of a generated word, in samples.
const (
	SpokenRate    = 8000
	SpokenSamples = 4096
)

// A phone is a sound of speech: resonances of the throat that a voice sounds through, or noise
// about a pitch.
type phone struct {
	formants [3]float64 // of a grown man, in hertz
	voice    float64    // 1: loud
	hiss     float64    // its middle in hertz; 0: none
	share    float64    // of a word's time, beside the others'
}

// phones are vowels (Peterson and Barney 1952), a nasal and two fricatives.
var phones = map[rune]phone{
	'a': {[3]float64{730, 1090, 2440}, 1, 0, 1}, 'i': {[3]float64{270, 2290, 3010}, 1, 0, 1}, 'u': {[3]float64{300, 870, 2240}, 1, 0, 1},
	'e': {[3]float64{530, 1840, 2480}, 1, 0, 1}, 'o': {[3]float64{570, 840, 2410}, 1, 0, 1}, 'm': {[3]float64{250, 1000, 2200}, 0.35, 0, 0.7},
	's': {[3]float64{400, 1700, 2600}, 0, 3500, 0.8}, 'h': {[3]float64{400, 1700, 2600}, 0, 1800, 0.8},
}

// spokenWords are what is said. Some have the same sounds in another order.
var spokenWords = []string{"asa", "eha", "hemo", "ima", "misu", "ose", "sami", "sime", "uhi", "umo"}

// Spoken makes n recordings of generated words as speakers say them: each of the speakers has
// a pitch, a throat, a tempo and a noise of its own, and no two recordings are alike. They are
// nobody's voice: harmonics through resonances, and noise. Speakers of one split are none of
// another's.
func Spoken(seed uint64, split string, speakers, n int) (*Set, error) {
	if speakers < 1 || n < speakers {
		return nil, fmt.Errorf("dataset: %d words of %d speakers: want at least one of each", n, speakers)
	}
	rng := seeded.Source(seed, binary.LittleEndian.Uint64([]byte("spoken  ")), uint64(crc32.ChecksumIEEE([]byte(split))))
	set := &Set{Name: "spoken words", Labels: spokenWords}
	for s := range speakers {
		v := voice{rng: rng, pitch: 90 + 150*rng.Float64(), throat: 0.9 + 0.3*rng.Float64(), tempo: 0.75 + 0.2*rng.Float64(), noise: 0.002 + 0.02*rng.Float64()}
		for i := s; i < n; i += speakers {
			word := rng.IntN(len(spokenWords))
			r, err := Recorded(&audio.Sound{Rate: SpokenRate, Samples: v.say(spokenWords[word])})
			if err != nil {
				return nil, err
			}
			set.Examples = append(set.Examples, Example{Label: word, Recording: r, User: split + "-" + strconv.Itoa(s)})
		}
	}
	return set, nil
}

// voice is a speaker's.
type voice struct {
	rng                  *rand.Rand
	pitch, throat, tempo float64 // of a word the tempo is a share of the recording's time
	noise                float64
}

// say is a word: every eight milliseconds sound as the two phones that they
// lie between.
func (v voice) say(word string) []float32 {
	const frame = 64
	out := make([]float32, SpokenSamples)
	spoken := min(0.97, v.tempo*(1+0.05*v.rng.NormFloat64())) * SpokenSamples
	start := v.rng.Float64() * (SpokenSamples - spoken)
	pitch, fall := v.pitch*(1+0.04*v.rng.NormFloat64()), 0.15*v.rng.Float64()
	gain := 0.3 + 0.5*v.rng.Float64()
	total := 0.0
	for _, p := range word {
		total += phones[p].share
	}
	var phases [40]float64
	low, last := 0.0, 0.0 // of the filter that colours noise
	for at := 0; at < len(out); at += frame {
		where := (float64(at) + frame/2 - start) / spoken
		now := phoneAt([]rune(word), where*total)
		edge := math.Min(1, math.Min(where, 1-where)*12)
		f0 := pitch * (1 - fall*where)
		var turn, loud [40]float64
		used := 0
		for k := range phases {
			f := f0 * float64(k+1)
			if f > SpokenRate/2-300 || edge <= 0 || now.voice <= 0 {
				break
			}
			used = k + 1
			turn[k] = 2 * math.Pi * f / SpokenRate
			for i, formant := range now.formants {
				d := (f - formant*v.throat) / (60 + 40*float64(i))
				loud[k] += math.Pow(0.6, float64(i)) / (1 + d*d)
			}
		}
		for i := at; i < min(at+frame, len(out)); i++ {
			x := 0.0
			for k := range used {
				phases[k] = math.Mod(phases[k]+turn[k], 2*math.Pi)
				x += loud[k] * math.Sin(phases[k])
			}
			x *= now.voice
			white := v.rng.NormFloat64()
			if now.hiss > 0 { // high noise is what changes from sample to sample, lower noise what does not
				bright := math.Min(1, now.hiss*v.throat/SpokenRate*2)
				low += 0.4 * (white - low)
				x += 0.5 * (1 - now.voice) * (bright*(white-last) + (1-bright)*2*low)
				last = white
			}
			out[i] = float32(gain*math.Max(0, edge)*0.4*x + v.noise*v.rng.NormFloat64())
		}
	}
	return out
}

// phoneAt is the sound at a time of a word, between the two phones whose middles are nearest.
func phoneAt(word []rune, at float64) phone {
	from := phones[word[0]]
	middle := from.share / 2
	for _, next := range word[1:] {
		to := phones[next]
		step := (from.share + to.share) / 2
		if at < middle+step {
			t := math.Min(1, math.Max(0, (at-middle)/step))
			t = t * t * (3 - 2*t)
			mix := func(a, b float64) float64 { return a + t*(b-a) }
			out := phone{voice: mix(from.voice, to.voice), hiss: math.Max(from.hiss, to.hiss)}
			for i := range out.formants {
				out.formants[i] = mix(from.formants[i], to.formants[i])
			}
			return out
		}
		from, middle = to, middle+step
	}
	return from
}
