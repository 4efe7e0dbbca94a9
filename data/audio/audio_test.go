package audio

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

type goldens struct {
	Files []struct {
		Bits, Rate int
		File       []byte
		Samples    []float64
	}
	Rates []struct {
		From, To int
		In       []float32
		Out      []float64
	}
}

func readGoldens(t testing.TB) (g goldens) {
	data, err := os.ReadFile("testdata/scipy.json")
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil || len(g.Files) == 0 || len(g.Rates) == 0 {
		t.Fatal(err)
	}
	return g
}

func same(t *testing.T, what string, got []float32, want []float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d samples, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= within) {
			t.Fatalf("%s: sample %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestWAVIsReadAsScipyDoes(t *testing.T) {
	for _, f := range readGoldens(t).Files {
		s, err := Decode(f.File)
		if err != nil {
			t.Fatal(f.Bits, err)
		}
		if s.Rate != f.Rate {
			t.Errorf("%d bits: rate %d, want %d", f.Bits, s.Rate, f.Rate)
		}
		same(t, "a file", s.Samples, f.Samples, 1e-7)
	}
}

func TestResampledIsAsScipyDoes(t *testing.T) {
	for _, r := range readGoldens(t).Rates {
		s, err := (&Sound{Rate: r.From, Samples: r.In}).Resampled(r.To)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "another rate", s.Samples, r.Out, 1e-6)
	}
}

// A tone keeps its height and its loudness; one that the lower rate cannot hold goes.
func TestResampledTones(t *testing.T) {
	const from, to = 48_000, 16_000
	for _, tone := range []struct{ hertz, left float64 }{{440, 1}, {3000, 1}, {12_000, 0}} {
		s := &Sound{Rate: from, Samples: make([]float32, from/4)}
		for i := range s.Samples {
			s.Samples[i] = float32(math.Sin(2 * math.Pi * tone.hertz * float64(i) / from))
		}
		out, err := s.Resampled(to)
		if err != nil {
			t.Fatal(err)
		}
		for i := 200; i < len(out.Samples)-200; i++ {
			want := tone.left * math.Sin(2*math.Pi*tone.hertz*float64(i)/to)
			if d := math.Abs(want - float64(out.Samples[i])); d > 0.01 {
				t.Fatalf("%v Hz: sample %d is off by %v", tone.hertz, i, d)
			}
		}
	}
}

func TestEncodeWAVIsDecodedAgain(t *testing.T) {
	s := &Sound{Rate: 16_000, Samples: []float32{0, 0.5, -1, 32767.0 / 32768, -0.25}}
	data, err := EncodeWAV(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil || got.Rate != s.Rate || !slices.Equal(got.Samples, s.Samples) {
		t.Errorf("%v, %v", got, err)
	}
}

// wav16 is a WAV file of one channel of 16 bits.
func wav16(t testing.TB, samples ...float32) []byte {
	data, err := EncodeWAV(&Sound{Rate: 16_000, Samples: samples})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	good := wav16(t, 0, 0.5, -0.5)
	changed := func(at int, b ...byte) []byte {
		c := slices.Clone(good)
		copy(c[at:], b)
		return c
	}
	for name, c := range map[string]struct {
		data []byte
		err  error
		says string
	}{
		"nothing":        {nil, ErrFormat, ""},
		"a text":         {[]byte("hello, this is a text"), ErrFormat, ""},
		"Ogg":            {[]byte("OggS\x00\x02"), ErrConvert, "convert it first, as by ffmpeg"},
		"a form":         {changed(8, 'A', 'V', 'I', ' '), ErrFormat, "WAVE"},
		"no samples":     {wav16(t), ErrEmpty, ""},
		"silence":        {wav16(t, 0, 0, 0), ErrSilent, "muted"},
		"cut":            {good[:len(good)-2], ErrShort, "data"},
		"half a block":   {changed(40, 5), ErrShort, "whole"},
		"no data":        {good[:36], nil, "no chunk"},
		"no format":      {append(slices.Clone(good[:12]), good[36:]...), nil, "before their format"},
		"no channel":     {changed(22, 0), nil, "0 channels"},
		"many channels":  {changed(22, 9), nil, "9 channels"},
		"a slow rate":    {changed(24, 1, 0), nil, "1 samples a second"},
		"a huge rate":    {changed(24, 255, 255, 255, 255), nil, "samples a second"},
		"12 bits":        {changed(34, 12), nil, "12 bits"},
		"another block":  {changed(32, 3), nil, "block"},
		"not a number":   {nanFile(), nil, "NaN"},
		"a cut FLAC":     {example1[:20], nil, "STREAMINFO"},
		"FLAC's picture": {append([]byte("fLaC\x06"), example1[5:]...), nil, "STREAMINFO"},
		"a changed FLAC": {append(slices.Clone(example1[:50]), 0, 0, 0, 0, 0, 0), nil, "FLAC"},
		"FLAC's end":     {example1[:42], nil, "samples"},
	} {
		_, err := Decode(c.data)
		if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", name, err, c.err, c.says)
		}
	}
	if s, err := Decode(changed(40, 255, 255, 255, 255)); err != nil || len(s.Samples) != 3 {
		t.Errorf("a length that was not known: %v, %v", s, err)
	}
}

func nanFile() []byte {
	le := binary.LittleEndian
	out := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x03\x00\x01\x00"), le.AppendUint32(nil, 16_000)...)
	out = append(le.AppendUint32(out, 64_000), 4, 0, 32, 0)
	out = append(out, "data\x08\x00\x00\x00"...)
	return le.AppendUint32(le.AppendUint32(out, 0), math.Float32bits(float32(math.NaN())))
}

// A file can say little and be much: what is refused takes little memory.
func TestAFileCannotClaimMoreThanItHolds(t *testing.T) {
	huge := wav16(t, 0, 0.5, -0.5)
	copy(huge[40:], []byte{0, 0, 0, 0x70})
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = Decode(huge)
		}
	}).AllocedBytesPerOp(); n > 4096 {
		t.Errorf("a WAV of 46 bytes takes %d bytes", n)
	}
	long := &Sound{Rate: LeastRate, Samples: make([]float32, MaxSamples)}
	if _, err := long.Resampled(16_000); err == nil {
		t.Error("four times the most samples, and no error")
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range readGoldens(f).Files {
		f.Add(g.File)
	}
	f.Add(example1)
	f.Add(frameOf(0x69, 0x10))
	f.Add(flacOf(f, 1, []int32{1, -2, 300, 4, 5, -60, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		again, err := EncodeWAV(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(again); err == nil && len(got.Samples) != len(s.Samples) {
			t.Fatalf("%d samples, then %d", len(s.Samples), len(got.Samples))
		}
	})
}
