package fleet

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// keptTrace is a trace as it is kept, so that a restart of the coordinator helps no bomber.
// Devices are identities in hexadecimal.
type keptTrace struct {
	Begun, Quiet int
	On           bool
	Hostile, N   int
	Weight       map[string]weight
	Alarms       [][]string
}

func name(d *Device) string { return hex.EncodeToString(d.ID[:]) }

func identity(name string) (id [32]byte) {
	b, _ := hex.DecodeString(name) // as name wrote it
	copy(id[:], b)
	return id
}

// Text is the stored form of the trace.
func (t *Trace) Text() (string, error) {
	k := keptTrace{Begun: t.begun, Quiet: t.quiet, On: t.on, Hostile: t.hostile, N: t.n, Weight: map[string]weight{}}
	for d, w := range t.weight {
		k.Weight[name(d)] = w
	}
	for _, sum := range t.alarms {
		var names []string
		for _, d := range sum {
			names = append(names, name(d))
		}
		k.Alarms = append(k.Alarms, names)
	}
	b, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("trace of alarms: %w", err)
	}
	return string(b), nil
}

// Resume continues with a trace that an earlier process began. Devices that were forgotten since
// keep their places in alarms: one of them may have made them.
func (t *Trace) Resume(text string, f *Fleet) error {
	var k keptTrace
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return fmt.Errorf("trace of alarms: %w", err)
	}
	*t = Trace{begun: k.Begun, quiet: k.Quiet, on: k.On, hostile: k.Hostile, n: k.N, weight: map[*Device]weight{}}
	for name, w := range k.Weight {
		if d := f.byID[identity(name)]; d != nil {
			t.weight[d] = w
		}
	}
	gone := map[[32]byte]*Device{}
	for _, names := range k.Alarms {
		sum := make([]*Device, len(names))
		for i, name := range names {
			id := identity(name)
			if sum[i] = cmp.Or(f.byID[id], gone[id]); sum[i] == nil {
				sum[i] = &Device{ID: id, N: -1, Standing: Standing{Excluded: true}}
				gone[id] = sum[i]
			}
		}
		t.alarms = append(t.alarms, sum)
	}
	return nil
}
