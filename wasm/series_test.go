package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// deep is toy with tensors of as many layers: codes, floats, and a pair that takes turns; unlike is in no series.
func deep(layers int) *Manifest {
	m := toy().manifest
	at := uint32(1 << 12)
	place := func(size uint32) uint32 {
		at += size
		return at - size
	}
	for l := range layers {
		m.Frozen = append(m.Frozen,
			Tensor{Name: fmt.Sprintf("layers.%d.q.weight", l), DType: Float32, Shape: []int{4, 16}, Offset: place(32), NF4: &NF4{Block: 64, Scales: place(16)}},
			Tensor{Name: fmt.Sprintf("layers.%d.norm.weight", l), DType: Float32, Shape: []int{4}, Offset: place(16)})
		m.State = append(m.State, Tensor{Name: fmt.Sprintf("layers.%d.q.lora_A", l), DType: Float32, Shape: []int{4}, Offset: place(16)},
			Tensor{Name: fmt.Sprintf("layers.%d.q.lora_B", l), DType: Float32, Shape: []int{4}, Offset: place(16)})
	}
	m.Frozen = append(m.Frozen, Tensor{Name: "last", DType: Float32, Shape: []int{}, Offset: place(16)})
	return m
}

// Tensors of layers are named once, however many layers there are, and come back as they were.
func TestSeries(t *testing.T) {
	lengths := map[int]int{}
	for _, layers := range []int{1, 2, 3, 12, 100} {
		m := deep(layers)
		payload, err := m.Encode()
		check(t, err)
		back, err := DecodeManifest(payload)
		check(t, err)
		if !reflect.DeepEqual(back.Frozen, m.Frozen) || !reflect.DeepEqual(back.State, m.State) {
			t.Errorf("%d layers came back as %+v", layers, back)
		}
		lengths[layers] = len(payload)
	}
	if more := lengths[100] - lengths[3]; more > 12 {
		t.Errorf("97 layers more take %d bytes, %v", more, lengths)
	}
	m := deep(12)
	m.Frozen[9].Offset += 1 << 12 // of layer 4: it stands where no step leads to
	payload, err := m.Encode()
	check(t, err)
	if back, err := DecodeManifest(payload); err != nil || !reflect.DeepEqual(back.Frozen, m.Frozen) {
		t.Errorf("%+v, %v", back, err)
	}
}

// A liar's series are refused before they take memory, and there is one way to write a list as series.
func TestSeriesRefused(t *testing.T) {
	payload, err := deep(4).Encode()
	check(t, err)
	for name, c := range map[string]struct {
		change func(s []seriesCode) []seriesCode // of the frozen
		want   string
	}{
		"no round":          {func(s []seriesCode) []seriesCode { s[1].Rounds = 0; return s }, "0 rounds"},
		"rounds below 0":    {func(s []seriesCode) []seriesCode { s[1].Rounds = -1; return s }, "-1 rounds"},
		"too many rounds":   {func(s []seriesCode) []seriesCode { s[1].Rounds = maxTensors + 1; return s }, "rounds, limit"},
		"too many tensors":  {func(s []seriesCode) []seriesCode { s[1].Rounds = maxTensors/2 + 1; return s }, "more than"},
		"a step too few":    {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Moves = []int64{64}; return s }, "1 steps, want 2"},
		"a step too many":   {func(s []seriesCode) []seriesCode { s[1].Tensors[1].Moves = []int64{64, 64}; return s }, "2 steps, want 1"},
		"below 0":           {func(s []seriesCode) []seriesCode { s[1].Tensors[1].Moves[0] = -1 << 20; return s }, "outside of any memory"},
		"scales below 0":    {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Moves[1] = -1 << 20; return s }, "outside of any memory"},
		"a step that wraps": {func(s []seriesCode) []seriesCode { s[1].Tensors[1].Moves[0] = 1 << 62; return s }, "outside of any memory"},
		"over each other":   {func(s []seriesCode) []seriesCode { s[1].Tensors[1].Moves[0] = 0; return s }, "overlap"},
		"no number":         {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Name = "layers"; return s }, "no number"},
		"zeros before it":   {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Name = "layers.007"; return s }, "no number"},
		"a large number":    {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Name = fmt.Sprint("layers.", maxNumber); return s }, "no number"},
		"a long name":       {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Name = strings.Repeat("a", 129); return s }, "128 bytes"},
		"many axes":         {func(s []seriesCode) []seriesCode { s[1].Tensors[0].Shape = make([]int, maxRank+1); return s }, "rank 9"},
		"moves alone":       {func(s []seriesCode) []seriesCode { s[0].Tensors[0].Moves = []int64{16}; return s }, "in no series"},
		"written out": {func(s []seriesCode) []seriesCode {
			left := maxTensors
			list, err := tensorsOf(s, &left)
			check(t, err)
			return []seriesCode{{Rounds: 1, Tensors: tensorCodes(list)}}
		}, "not in canonical"},
		"one round cut off": {func(s []seriesCode) []seriesCode {
			first, err := tensorsOf(s[1:2], new(int(maxTensors)))
			check(t, err)
			rest := seriesOf(first[2:])[0]
			s[0].Tensors = append(s[0].Tensors, tensorCodes(first[:2])...)
			return []seriesCode{s[0], rest, s[2]}
		}, "not in canonical"},
		"an empty one": {func(s []seriesCode) []seriesCode { return append(s, seriesCode{Rounds: 1}) }, "not in canonical"},
	} {
		var code manifestCode
		check(t, manifestForm.Unmarshal(payload, &code))
		if len(code.Frozen) != 3 || code.Frozen[1].Rounds != 4 {
			t.Fatalf("frozen tensors stand as %+v", code.Frozen)
		}
		code.Frozen = c.change(code.Frozen)
		hostile, err := manifestForm.Append(nil, code)
		check(t, err)
		if bytes.Equal(hostile, payload) {
			t.Errorf("%s: nothing changed", name)
		}
		if _, err := DecodeManifest(hostile); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// As many tensors as are allowed cost what they do written out, however few bytes they take.
func TestSeriesAllocations(t *testing.T) {
	payload, err := deep(4).Encode()
	check(t, err)
	var code manifestCode
	check(t, manifestForm.Unmarshal(payload, &code))
	code.Inputs, code.Outputs, code.State = nil, nil, nil
	long := tensorCode{Name: strings.Repeat("a", 127) + "0", DType: Float32, Shape: slices.Repeat([]int{1}, maxRank), Moves: []int64{16}}
	code.Frozen = []seriesCode{{Rounds: maxTensors, Tensors: []tensorCode{long}}}
	hostile, err := manifestForm.Append(nil, code)
	check(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = DecodeManifest(hostile)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrRefused) { // names grow beyond what they may
		t.Error(err)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1000*maxTensors); got > most {
		t.Errorf("%d bytes became %d, want at most %d", len(hostile), got, most)
	}
}
