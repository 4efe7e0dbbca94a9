package gateways

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-fl/starling/coordinator/store"
)

// Agree holds a job's ledger, which has been verified, against its fleet's, as starling job ledger
// --json prints it: no round is charged twice, and what one charges the other does. It tells how
// many rounds were released, and which were begun and have not ended.
func Agree(job store.Ledger, fleet []byte) (released int, open []uint64, err error) {
	charged := map[uint64]bool{}
	for _, e := range job.Entries {
		if charged[e.Event.Round] {
			err = errors.Join(err, fmt.Errorf("round %d is charged twice", e.Event.Round))
		}
		charged[e.Event.Round] = true
		if e.Reason == "" {
			released++
		}
	}
	var fleets struct {
		Entries []struct {
			Act   string
			Round uint64
		}
	}
	if err := json.Unmarshal(fleet, &fleets); err != nil {
		return 0, nil, fmt.Errorf("the fleet's ledger: %w", err)
	}
	begun := map[uint64]bool{}
	for _, e := range fleets.Entries {
		if e.Act == "reserve" {
			begun[e.Round] = true
			continue
		}
		delete(begun, e.Round)
		if e.Act != "charge" {
			continue
		}
		if !charged[e.Round] {
			err = errors.Join(err, fmt.Errorf("round %d is charged to the fleet twice, or not in its job's ledger", e.Round))
		}
		delete(charged, e.Round)
	}
	if len(charged) > 0 {
		err = errors.Join(err, fmt.Errorf("rounds %v were charged, and not to the fleet", slices.Sorted(maps.Keys(charged))))
	}
	return released, slices.Sorted(maps.Keys(begun)), err
}
