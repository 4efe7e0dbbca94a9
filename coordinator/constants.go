package coordinator

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/job"
)

// constants are the keys of a job that may not change. Where and how long does not change
// what is released: these may be edited between two starts.
func constants(j Job) Job {
	j.Deadlines, j.Enrolment, j.Base, j.Adapter.Start = job.Deadlines{}, job.Enrolment{}, "", ""
	j.Cohort.MaxConnected, j.Cohort.MaxEnrolled, j.Cohort.MaxAbandoned = 0, 0, 0
	return j
}

// kept is what the digest is of, key by key, for the store to say what changed. Files go
// by their content: base and adapter.start.
func kept(t *core.Terms, private bool) (store.Terms, error) {
	given, err := keys(constants(t.Given))
	if err != nil {
		return store.Terms{}, err
	}
	derived, err := keys(constants(t.Job))
	if err != nil {
		return store.Terms{}, err
	}
	for _, m := range []map[string]string{given, derived} {
		m["base"] = fmt.Sprintf("%s, SHA-256 %.6x...", t.Base.Config.ModelType, t.BaseRef.SHA256)
		if len(t.Start) > 0 {
			m["adapter.start"] = fmt.Sprintf("SHA-256 %.6x...", t.Start)
		}
		if !private {
			m["the run"] = "reproducible"
		}
	}
	if t.NoiseMultiplier != 0 {
		derived["privacy.noise_multiplier"] = fmt.Sprint(t.NoiseMultiplier)
	}
	return store.Terms{Given: given, Derived: derived}, nil
}

// keys lists a job's keys that are not zero, by their names in a job file.
func keys(j Job) (map[string]string, error) {
	out := map[string]string{}
	return out, addKeys(out, "", reflect.ValueOf(j))
}

func addKeys(out map[string]string, prefix string, v reflect.Value) error {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Tag.Get("yaml")
		switch {
		case f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0:
		case f.Kind() == reflect.Struct:
			if err := addKeys(out, prefix+name+".", f); err != nil {
				return err
			}
		case f.Kind() == reflect.String:
			out[prefix+name] = f.String()
		default:
			b, err := json.Marshal(f.Interface())
			if err != nil {
				return fmt.Errorf("coordinator: %s%s: %w", prefix, name, err)
			}
			out[prefix+name] = string(b)
		}
	}
	return nil
}
