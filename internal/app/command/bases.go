package command

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model/known"
)

// KnownFlags name a list of published bases beside the program's own.
type KnownFlags struct {
	file string
	keys []string
}

// Add adds the flags.
func (f *KnownFlags) Add(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "base-list", "", "signed list of more published bases (see 'starling base sign')")
	fl.StringSliceVar(&f.keys, "base-key", nil, "key that must have signed it, name+hash+key")
}

// List is the list that is named, nil if none is.
func (f *KnownFlags) List() (known.List, error) {
	if f.file == "" {
		if len(f.keys) > 0 {
			return nil, usage.Errorf("--base-key is of a list: --base-list names none")
		}
		return nil, nil
	}
	if len(f.keys) == 0 {
		return nil, usage.Errorf("--base-list %s: --base-key says whose signature it needs", f.file)
	}
	file, err := named.Once(f.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, known.MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	l, err := known.Open(b, f.keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	return l, nil
}
