package accounts

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/durable"
)

// Folder holds the accounts of this user's data sets. A data set is known by its examples, whatever
// its path and identity: copied, renamed, sorted or grown by some lines it continues with the same
// account. Of the examples only a keyed sample of hashes is kept.
type Folder struct {
	dir string
	key []byte
}

const mostAccounts = 10_000 // data sets of one user

// sameData is what to do where data takes part twice.
const sameData = "a copy of it, or a part, is the same data"

// Open returns the folder given, made if it is not there, or with "" the user's own.
func Open(dir string) (*Folder, error) {
	if dir == "" {
		var err error
		if dir, err = UserPath("", os.UserConfigDir, "accounts"); err != nil {
			return nil, fmt.Errorf("%w: a data set's account needs a folder (--accounts)", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of accounts: %w", err)
	}
	return &Folder{dir: dir}, nil
}

// Dir returns the folder's path.
func (a *Folder) Dir() string { return a.dir }

// locked does something while no other process looks a data set up.
func (a *Folder) locked(do func() error) (err error) {
	lock := flock.New(filepath.Join(a.dir, "lock"))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock of %s: %w", a.dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	path := filepath.Join(a.dir, "key")
	if a.key, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		a.key = make([]byte, 32)
		rand.Read(a.key) // ends the program where the system has no randomness
		err = durable.Replace(path, a.key, 0o600)
	}
	if err == nil && len(a.key) != 32 {
		err = fmt.Errorf("%s has %d bytes, 32 expected", path, len(a.key))
	}
	if err != nil {
		return fmt.Errorf("key of the accounts: %w", err)
	}
	return do()
}

// hashes are those of a set's examples, each once. Its label is none of an example: a
// file that is labelled anew is the same data.
func (a *Folder) hashes(set *dataset.Set) map[string]bool {
	all := make(map[string]bool, len(set.Examples))
	m := hmac.New(sha256.New, a.key)
	part := func(b []byte) {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		m.Write(b)
	}
	for i := range set.Examples {
		e := &set.Examples[i]
		m.Reset()
		part([]byte(e.Text))
		for _, w := range e.Words {
			part([]byte(w))
		}
		part([]byte(e.Question))
		if e.Prompt != "" {
			part([]byte(e.Prompt))
		}
		for _, said := range asked(e.Messages) {
			part([]byte(said))
		}
		if e.Image != nil {
			m.Write(e.Image.Identity())
		}
		if e.Recording != nil {
			m.Write(e.Recording.Identity())
		}
		all[hex.EncodeToString(m.Sum(nil)[:8])] = true
	}
	return all
}

// asked are a conversation's messages without the assistant's, which are its label; all of it where there are no others.
func asked(messages string) (out []string) {
	if messages == "" {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal([]byte(messages), &list) != nil {
		return []string{messages}
	}
	for _, m := range list {
		var of struct{ Role string }
		if json.Unmarshal(m, &of) == nil && of.Role != "assistant" && of.Role != "system" {
			out = append(out, string(m))
		}
	}
	if out == nil {
		return []string{messages}
	}
	return out
}

// find lists the accounts of a data set, by the paths of their files; none: it has
// not joined anything.
func (a *Folder) find(hashes map[string]bool, data string) (found []string, of []*sketch, err error) {
	names, err := filepath.Glob(filepath.Join(a.dir, "*.data.json"))
	if err != nil {
		return nil, nil, err
	}
	if len(names) > mostAccounts {
		return nil, nil, fmt.Errorf("%s has %d accounts, limit %d", a.dir, len(names), mostAccounts)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		s, err := parseSketch(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		if s.same(hashes, data) {
			found, of = append(found, name[:len(name)-len(".data.json")]+".json"), append(of, s)
		}
	}
	return found, of, nil
}

// Take opens the account of a data set and holds it: one job at a time uses the data, under
// whatever identity. Several accounts of one data set, and one that an older version kept next to
// the identity file, are added up and the others set aside.
func (a *Folder) Take(set *dataset.Set, data, identity string) (_ *edge.Account, release func() error, err error) {
	real, err := realPath(data)
	if err != nil {
		return nil, nil, err
	}
	var account *edge.Account
	release = func() error { return nil }
	err = a.locked(func() (err error) {
		hashes := a.hashes(set)
		found, of, err := a.find(hashes, real)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			found, of = []string{filepath.Join(a.dir, rand.Text()[:16]+".json")}, []*sketch{{Version: sketchVersion}}
		}
		// Held one and all, so that none is in use while it is added up.
		for _, path := range found {
			free, err := hold(path, "data in "+data, sameData)
			if err != nil {
				return err
			}
			before := release
			release = func() error { return errors.Join(free(), before()) }
		}
		if account, err = edge.OpenAccount(found[0]); err != nil {
			return err
		}
		aside := found[1:]
		if old, err := OldPath(identity, data); err != nil {
			return err
		} else if _, err := os.Stat(old); err == nil {
			free, err := hold(old, "data in "+data, sameData)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, free()) }()
			aside = append(aside, old)
		}
		for _, path := range aside {
			other, err := edge.OpenAccount(path)
			if err == nil {
				err = account.Merge(other)
			}
			if err == nil {
				err = os.Rename(path, path+".merged")
			}
			if err != nil {
				return err
			}
		}
		for i, s := range of[1:] {
			of[0].join(s)
			if err := os.Remove(found[i+1][:len(found[i+1])-len(".json")] + ".data.json"); err != nil {
				return err
			}
		}
		of[0].grow(hashes, real)
		b, err := json.MarshalIndent(of[0], "", "\t")
		if err != nil {
			return err
		}
		return durable.Replace(found[0][:len(found[0])-len(".json")]+".data.json", append(b, '\n'), 0o600)
	})
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return account, release, nil
}

// Look reads the account of a data set, held or not, without changing anything; nil:
// it has none.
func (a *Folder) Look(set *dataset.Set, data, identity string) (account *edge.Account, err error) {
	real, err := realPath(data)
	if err != nil {
		return nil, err
	}
	err = a.locked(func() error {
		found, _, err := a.find(a.hashes(set), real)
		if err != nil {
			return err
		}
		if old, err := OldPath(identity, data); err != nil {
			return err
		} else if _, err := os.Stat(old); err == nil {
			found = append(found, old)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has joined and not been asked
			}
			if err != nil {
				return err
			}
			other, err := edge.NewAccount(b, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if account == nil {
				account = other
			} else if err := account.Merge(other); err != nil {
				return err
			}
		}
		return nil
	})
	return account, err
}

// realPath is where a file lies, whatever link leads there.
func realPath(data string) (string, error) {
	at, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	return at, nil
}

// OldPath returns the path of an older version's account: next to the identity.
func OldPath(identity, data string) (string, error) {
	name, err := dataName(data)
	return filepath.Join(filepath.Dir(identity), "account-"+name+".json"), err
}
