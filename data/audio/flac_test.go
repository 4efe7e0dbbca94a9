package audio

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// example1 is the file of RFC 9639, appendix D.1: one sample of two channels, 25588 and 10416, whose MD5 it holds.
var example1, _ = hex.DecodeString("664c614380000022100010000000" + "0f00000f0ac442f0000000013e84b41807dc690307586a3dad1a2e0f" +
	"fff869180000bf0358fd03128baa9a")

func TestFLACOfTheRFC(t *testing.T) {
	s, err := decodeFLAC(example1)
	if err != nil {
		t.Fatal(err)
	}
	if want := float32((25588 + 10416) / 65536.0); s.Rate != 44100 || !slices.Equal(s.Samples, []float32{want}) {
		t.Errorf("%+v, want one sample of %v at 44100", s, want)
	}
}

// flacOf is a FLAC file of one frame of the same samples in each channel.
func flacOf(t testing.TB, channels int, samples []int32) []byte {
	t.Helper()
	var out bytes.Buffer
	n := uint16(len(samples))
	enc, err := flac.NewEncoder(&out, &meta.StreamInfo{BlockSizeMin: n, BlockSizeMax: n, SampleRate: 16_000,
		NChannels: uint8(channels), BitsPerSample: 16, NSamples: uint64(n)})
	if err != nil {
		t.Fatal(err)
	}
	f := &frame.Frame{Header: frame.Header{HasFixedBlockSize: true, BlockSize: n, SampleRate: 16_000, Channels: frame.Channels(channels - 1), BitsPerSample: 16}}
	for range channels {
		f.Subframes = append(f.Subframes, &frame.Subframe{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, Samples: slices.Clone(samples), NSamples: int(n)})
	}
	if err := enc.WriteFrame(f); err != nil {
		t.Fatal(err)
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFLACIsWhatWasWritten(t *testing.T) {
	in := make([]int32, 400)
	for i := range in {
		in[i] = int32(i*i*7%4001 - 2000)
	}
	for channels := 1; channels <= 2; channels++ {
		s, err := Decode(flacOf(t, channels, in))
		if err != nil {
			t.Fatal(err)
		}
		if s.Rate != 16_000 || len(s.Samples) != len(in) {
			t.Fatalf("%d samples at %d", len(s.Samples), s.Rate)
		}
		for i, v := range s.Samples {
			if v != float32(in[i])/(1<<15) {
				t.Fatalf("sample %d is %v, want %d", i, v, in[i])
			}
		}
	}
}

// frameOf is example1 with two bytes of its frame's header changed, and its checksums put right.
func frameOf(rates, shape byte) []byte {
	const frame, check = 42, 48
	out := slices.Clone(example1)
	out[frame+2], out[frame+3] = rates, shape
	remainder := func(b []byte, width, polynomial uint) (sum uint) {
		for _, v := range b {
			sum ^= uint(v) << (width - 8)
			for range 8 {
				if sum <<= 1; sum>>width != 0 {
					sum ^= 1<<width | polynomial
				}
			}
		}
		return sum
	}
	out[check] = byte(remainder(out[frame:check], 8, 0x07))
	end := len(out) - 2
	binary.BigEndian.PutUint16(out[end:], uint16(remainder(out[frame:end], 16, 0x8005)))
	return out
}

// A frame may leave to the description what a sample is, and may not say otherwise.
func TestFLACFramesAgreeWithTheirDescription(t *testing.T) {
	for name, c := range map[string]struct {
		rates, shape byte
		says         string // "": it is read as it was
	}{
		"as it was":         {0x69, 0x18, ""},
		"bits as described": {0x69, 0x10, ""},
		"rate as described": {0x60, 0x18, ""},
		"24 bits":           {0x69, 0x1c, "24 bits"},
		"another rate":      {0x65, 0x18, "16000 samples a second"},
		"one channel":       {0x69, 0x08, "1 channels"},
		"eight channels":    {0x69, 0x78, "8 channels"},
	} {
		if c.says != "" {
			if _, err := Decode(frameOf(c.rates, c.shape)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
			}
			continue
		}
		// One sample alone is silence to Decode: what there is of it is compared.
		if s, err := decodeFLAC(frameOf(c.rates, c.shape)); err != nil || !slices.Equal(s.Samples, []float32{(25588 + 10416) / 65536.0}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
