package fleet

import (
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
	byName := map[string]*Device{}
	for _, d := range f.all {
		byName[name(d)] = d
	}
	for id, w := range k.Weight {
		if d := byName[id]; d != nil {
			t.weight[d] = w
		}
	}
	for _, names := range k.Alarms {
		sum := make([]*Device, len(names))
		for i, id := range names {
			if byName[id] == nil {
				byName[id] = &Device{N: -1, Standing: Standing{Excluded: true}}
				if b, err := hex.DecodeString(id); err == nil {
					copy(byName[id].ID[:], b)
				}
			}
			sum[i] = byName[id]
		}
		t.alarms = append(t.alarms, sum)
	}
	return nil
}
