package audio

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func oggFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What Xiph's libraries decode is decoded: Vorbis to half a step of 16 bits and what rounding
// adds, Opus to what the decoders differ by that its RFC accepts.
func TestOggIsWhatXiphDecodes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ogg.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Rate, Channels int
		Samples        string
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != 6 {
		t.Fatalf("%d files", len(want))
	}
	for name, w := range want {
		s, err := Decode(oggFile(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(w.Samples)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(raw) / 2 / w.Channels; len(s.Samples) != n || s.Rate != w.Rate {
			t.Errorf("%s: %d samples at %d, want %d at %d", name, len(s.Samples), s.Rate, n, w.Rate)
			continue
		}
		worst, power, off := 0.0, 0.0, 0.0
		for i, got := range s.Samples {
			sum := 0.0
			for c := range w.Channels {
				sum += float64(int16(binary.LittleEndian.Uint16(raw[2*(i*w.Channels+c):]))) / (1 << 15)
			}
			sum /= float64(w.Channels)
			d := float64(got) - sum
			worst, power, off = max(worst, math.Abs(d)), power+sum*sum, off+d*d
		}
		if filepath.Ext(name) == ".ogg" && worst > 1.1/(1<<15) {
			t.Errorf("%s: %.2f steps of 16 bits beside libvorbis", name, worst*(1<<15))
		}
		if snr := 10 * math.Log10(power/off); snr < 40 {
			t.Errorf("%s: %.1f dB above what it is beside Xiph's decoder, want 40", name, snr)
		}
	}
}

// opusHead is Opus's first packet.
func opusHead(channels, family byte) []byte {
	return append([]byte("OpusHead\x01"), channels, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, family)
}

// resummed is an Ogg file whose pages' checksums are their own again, as far as it has pages.
func resummed(data []byte) []byte {
	data = slices.Clone(data)
	for at := 0; at+27 <= len(data); {
		size := 27 + int(data[at+26])
		if at+size > len(data) {
			break
		}
		for _, n := range data[at+27 : at+size] {
			size += int(n)
		}
		if at+size > len(data) {
			break
		}
		binary.LittleEndian.PutUint32(data[at+22:], oggSum(data[at:at+size]))
		at += size
	}
	return data
}

// oggOf is an Ogg file of one stream with these packets, a page each.
func oggOf(packets ...[]byte) []byte {
	var out []byte
	for i, p := range packets {
		flags := byte(0)
		if i == 0 {
			flags = 2
		}
		if i == len(packets)-1 {
			flags |= 4
		}
		var sizes []byte
		for n := len(p); ; n -= 255 {
			sizes = append(sizes, byte(min(n, 255)))
			if n < 255 {
				break
			}
		}
		page := append([]byte("OggS\x00"), flags)
		page = append(page, 255, 255, 255, 255, 255, 255, 255, 255, 7, 0, 0, 0)
		page = binary.LittleEndian.AppendUint32(page, uint32(i))
		page = append(page, 0, 0, 0, 0, byte(len(sizes)))
		out = append(out, append(append(page, sizes...), p...)...)
	}
	return resummed(out)
}

// bitsIn writes numbers of so many bits, least significant first.
func bitsIn(pairs ...uint64) []byte {
	var out []byte
	at := 0
	for i := 0; i < len(pairs); i += 2 {
		for b := range pairs[i+1] {
			if at%8 == 0 {
				out = append(out, 0)
			}
			out[at/8] |= byte(pairs[i]>>b&1) << (at % 8)
			at++
		}
	}
	return out
}

// What a decoder takes for what it says is refused before it is asked: sizes, codes that do
// not end, pages that are not there.
func TestHostileOggIsRefused(t *testing.T) {
	good := oggFile(t, "mono8k.ogg")
	packets, _, err := oggPackets(good)
	if err != nil {
		t.Fatal(err)
	}
	identity := func(at int, v ...byte) []byte {
		h := slices.Clone(packets[0])
		copy(h[at:], v)
		return oggOf(h, packets[1], packets[2], packets[3])
	}
	setup := func(book ...uint64) []byte {
		h := append([]byte("\x05vorbis"), bitsIn(append([]uint64{0, 8, 0x564342, 24}, book...)...)...)
		return oggOf(packets[0], packets[1], append(h, make([]byte, 64)...), packets[3])
	}
	// One codebook, floor, mapping and mode, and a residue of 2^32-1 values, of which a decoder would make 2^24 parts.
	small := append([]byte("\x05vorbis"), bitsIn(0, 8, 0x564342, 24, 1, 16, 2, 24, 0, 1, 0, 1, 0, 5, 0, 5, 0, 4, 0, 6, 0, 16,
		0, 6, 1, 16, 0, 5, 0, 3, 0, 2, 0, 8, 0, 2, 4, 4, 0, 6, 0, 16, 1, 24, 0, 24, 255, 24, 0, 6, 0, 8, 0, 4,
		0, 6, 0, 16, 0, 1, 0, 1, 0, 2, 0, 24, 0, 6, 0, 33, 0, 8, 1, 1)...)
	negative := oggOf(packets[0], packets[1], small, bitsIn(0, 1, 1, 1, 0, 64))
	turned := func(at int, v byte) []byte {
		data := slices.Clone(good)
		data[at] ^= v
		return data
	}
	second := 28 + int(good[27]) // where the second page begins
	for name, c := range map[string]struct {
		data []byte
		says string
		is   error
	}{
		"a bit":               {turned(len(good)-9, 1), "damaged", nil},
		"cut off":             {good[:len(good)-7], "ends before", ErrShort},
		"a page cut off":      {good[:40], "ends before", ErrShort},
		"headers alone":       {oggOf(packets[:2]...), "three are headers", ErrShort},
		"no samples":          {oggOf(packets[:3]...), "no samples", ErrEmpty},
		"a missing page":      {append(slices.Clone(good[:second]), good[second+100:]...), "OggS", nil},
		"pages out of order":  {resummed(turned(second+18, 4)), "pages are missing", nil},
		"two streams":         {resummed(turned(second+14, 4)), "several streams", nil},
		"one after the other": {append(slices.Clone(good), good...), "another stream", nil},
		"goes on":             {resummed(turned(5, 1)), "has not begun", nil},
		"Opus, cut off":       {oggOf([]byte("OpusHead\x01")), "has 9 bytes", nil},
		"Opus without more":   {oggOf(opusHead(1, 0)), "no comments", nil},
		"Opus of the future":  {oggOf(append([]byte("OpusHead\x10"), opusHead(1, 0)[9:]...), []byte("OpusTags")), "version 16", nil},
		"Opus all round":      {oggOf(opusHead(6, 1), []byte("OpusTags")), "6 channels", nil},
		"Opus of nothing":     {oggOf(opusHead(1, 0), []byte("OpusTags")), "no samples", ErrEmpty},
		"Opus of noise":       {oggOf(opusHead(1, 0), []byte("OpusTags"), []byte{3}), "Opus, after 0 samples", nil},
		"Opus too large":      {oggOf(opusHead(1, 0), []byte("OpusTags"), make([]byte, 1300)), "Opus, after 0 samples", nil},
		"FLAC in Ogg":         {oggOf([]byte("\x7fFLAC")), "FLAC in Ogg", ErrFormat},
		"something else":      {oggOf([]byte("theora")), "want Vorbis or Opus", ErrFormat},
		"channels":            {identity(11, 9), "9 channels", nil},
		"no channels":         {identity(11, 0), "0 channels", nil},
		"rate":                {identity(12, 1, 0, 0, 0), "1 samples a second", nil},
		"rate beyond":         {identity(12, 255, 255, 255, 255), "samples a second", nil},
		"blocks":              {identity(28, 0xff), "blocks of", nil},
		"longer is shorter":   {identity(28, 0x6d), "blocks of", nil},
		"entries":             {setup(1, 16, 1<<24-1, 24), "16777215 entries", nil},
		"values":              {setup(65535, 16, 4096, 24), "of 65535 values", nil},
		"no values":           {setup(0, 16, 4, 24), "of 0 values", nil},
		"a code without end":  {setup(1, 16, 4, 24, 0, 1, 1, 1, 0, 4), "places of the tree free", nil},
		"words for nothing":   {setup(1, 16, 1000, 24, 1, 1, 0, 5), "longer than 32", nil},
		"too many words":      {setup(1, 16, 4, 24, 0, 1, 0, 1, 0, 5, 0, 5, 0, 5), "more words", nil},
		"a table":             {setup(1, 16, 2, 24, 0, 1, 0, 1, 0, 5, 0, 5, 9, 4), "type 9", nil},
		"an old floor":        {setup(1, 16, 2, 24, 0, 1, 0, 1, 0, 5, 0, 5, 0, 4, 0, 6, 0, 16, 0, 6, 0, 16), "floor of type 0", nil},
		"a negative residue":  {negative, "a residue from value 1 to 0", nil},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(c.data)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s takes %d bytes", name, n)
		}
	}
	// Comments are not looked at: ones that say of themselves that they are endless do no harm.
	endless := append([]byte("\x03vorbis\x00\x00\x00\x00\xff\xff\xff\xff"), 1)
	all := slices.Clone(packets)
	all[1] = endless
	if s, err := Decode(oggOf(all...)); err != nil || len(s.Samples) == 0 {
		t.Errorf("endless comments: %v", err)
	}
}

// A file's packets may say anything: it ends, by an error or by samples within bounds.
func FuzzOgg(f *testing.F) {
	for _, name := range []string{"mono8k.ogg", "stereo44k.ogg", "mono16k.ogg", "voice.opus", "wide.opus", "stereo.opus"} {
		f.Add(oggFile(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		began := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := decodeOgg(resummed(data))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<20 {
			t.Errorf("%d bytes take %d", len(data), n)
		}
		if err == nil && (len(s.Samples) > MaxSamples || s.Rate < LeastRate) {
			t.Errorf("%d samples at %d", len(s.Samples), s.Rate)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%d bytes take %v", len(data), took)
		}
	})
}
