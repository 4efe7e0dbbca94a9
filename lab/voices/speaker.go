package voices

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// Parts of a set: speakers of one are none of another's, and those that test have voices of
// espeak-ng that none of those that train has.
const (
	Train      = "train"
	Validation = "validation"
	Test       = "test"
)

// Speaker is a generated voice.
type Speaker struct {
	ID     string  `json:"id"`
	Part   string  `json:"part"`
	Voice  string  `json:"voice"`  // of espeak-ng: accent and variant; or of flite, behind fliteMark
	Pitch  int     `json:"pitch"`  // of espeak-ng, 0..99
	Speed  int     `json:"speed"`  // words a minute
	Throat float64 `json:"throat"` // resonances over those of the voice
	Trims  bool    `json:"trims"`  // its recordings begin and end with the speech

	Noise  float64 `json:"noise"`  // below the speech in dB
	Bright float64 `json:"bright"` // of the noise: 1 white, 0 as low as it gets
	Tilt   float64 `json:"tilt"`   // of the microphone: high against low
	Room   float64 `json:"room"`   // what comes back of the speech
	Delay  float64 `json:"delay"`  // how long that takes, in seconds
}

// source is a generator for a purpose and a number.
func source(seed uint64, purpose string, n int) *rand.Rand {
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("starling voices "+purpose+" "), uint64(n)))
	return rand.New(rand.NewPCG(seed^binary.BigEndian.Uint64(h[:]), binary.BigEndian.Uint64(h[8:])))
}

// speakers are the first n of a seed. With flite half of those that train have a voice of
// flite's; the others are who they are without it.
func speakers(seed uint64, n int, flite bool) []Speaker {
	out := make([]Speaker, n)
	taken := map[string]bool{}
	for i := range out {
		rng := source(seed, "speaker", i)
		s := Speaker{Part: Train}
		of := lists().variants
		switch i % 10 {
		case 8:
			s.Part, of = Validation, lists().heldOut
		case 9:
			s.Part, of = Test, lists().heldOut
		}
		for s.ID == "" || taken[s.ID] {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], rng.Uint32())
			s.ID = hex.EncodeToString(b[:])
		}
		taken[s.ID] = true
		s.Voice = lists().accents[rng.IntN(len(lists().accents))] + "+" + of[rng.IntN(len(of))]
		within := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
		s.Pitch, s.Speed, s.Throat = int(within(15, 85)), int(within(110, 190)), within(0.86, 1.16)
		s.Trims = rng.IntN(2) == 0
		s.Noise, s.Bright, s.Tilt = within(12, 45), rng.Float64(), within(-0.5, 0.9)
		s.Room, s.Delay = within(0, 0.5)*rng.Float64(), within(0.01, 0.06)
		if flite && i%2 == 0 && s.Part == Train { // few voices, and so throats that differ more
			s.Voice, s.Throat = fliteMark+fliteVoices[i/2%len(fliteVoices)], within(0.8, 1.25)
		}
		out[i] = s
	}
	return out
}
