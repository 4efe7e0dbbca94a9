// Package backup copies what a coordinator or a server of several jobs cannot lose into one file, while it runs too, and
// puts it back.
//
//	about, err := backup.Make("run1", "run1.backup", version, time.Now())
//	...
//	about, err = backup.Restore("run1.backup", "run2", false)
//
// A copy of a ledger is dangerous: a coordinator that went on from an old one would spend the budget of the forgotten
// rounds again. So what was copied from a running coordinator is put back for reading alone: serve refuses it. Only a copy
// of one that had stopped may be continued, and somebody has to say that it is the newest.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/model"
)

// LastName is the file in a coordinator's folder that says when it was copied last, and where to.
const LastName = "backup.last"

// keyName is the file of a coordinator's pinned certificate and its key, if it has one.
const keyName = "tls.pem"

// manifestName is the last entry of a backup. Its presence says that the file is whole.
const manifestName = "backup.json"

// Limits of what Restore reads.
const (
	maxManifest = 16 << 20 // bytes
	maxFile     = 1 << 40
)

// About says what a backup holds.
type About struct {
	Version string    `json:"version"` // of the program that made it
	Copied  time.Time `json:"copied"`
	Running bool      `json:"running"` // whether a coordinator ran meanwhile: it has released more since
	Stores  []string  `json:"stores"`  // folders of ledgers, relative to the coordinator's
	Files   []File    `json:"files"`
}

// File is one of a backup's.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files.
func (a About) Bytes() (n int64) {
	for _, f := range a.Files {
		n += f.Size
	}
	return n
}

// Make writes the stores of a folder, its certificate's key and its last releases to a file that is not there. The
// file holds secrets and has mode 0600.
func Make(dir, file, version string, now time.Time) (about About, err error) {
	folders, err := store.Stores(dir)
	if err != nil {
		return about, err
	}
	if _, err := os.Lstat(file); err == nil {
		return about, fmt.Errorf("%s: %w", file, fs.ErrExist)
	}
	release, running, err := store.Hold(dir)
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, release()) }()
	about = About{Version: version, Copied: now.UTC().Truncate(time.Second), Running: running, Stores: folders}
	for i, f := range folders {
		about.Stores[i] = filepath.ToSlash(f)
	}
	half, err := os.OpenFile(file+".part", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return about, fmt.Errorf("%s.part is left of a backup that was interrupted: remove it", file)
	}
	if err != nil {
		return about, err
	}
	defer func() {
		err = errors.Join(err, half.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(half.Name()))
		}
	}()
	if err := tidy(dir, now); err != nil {
		return about, err
	}
	z := gzip.NewWriter(half)
	w := &writer{tar: tar.NewWriter(z), about: &about}
	if err := w.stores(dir); err != nil {
		return about, err
	}
	if err := w.file(keyName, filepath.Join(dir, keyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return about, err
	}
	for _, s := range about.Stores {
		if err := w.checkpoint(dir, path.Join(s, "checkpoint")); err != nil {
			return about, err
		}
	}
	if err := w.manifest(); err != nil {
		return about, err
	}
	if err := errors.Join(w.tar.Close(), z.Close(), half.Sync()); err != nil {
		return about, err
	}
	if err := os.Rename(half.Name(), file); err != nil {
		return about, err
	}
	return about, durable.Replace(filepath.Join(dir, LastName), []byte(about.Copied.Format(time.RFC3339)+" "+file+"\n"), 0o600)
}

// writer writes a backup's entries.
type writer struct {
	tar   *tar.Writer
	about *About
}

// besides begins the names of folders in which copies are made.
const besides = ".backup-"

// tidy removes what an interrupted backup left in a coordinator's folder: it holds secrets.
func tidy(dir string, now time.Time) error {
	left, err := filepath.Glob(filepath.Join(dir, besides+"*"))
	if err != nil {
		return err
	}
	for _, at := range left {
		if info, err := os.Stat(at); err == nil && now.Sub(info.ModTime()) > time.Hour { // no backup takes so long
			err = os.RemoveAll(at)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stores copies each ledger as it is at one moment.
func (w *writer) stores(dir string) error {
	beside, err := os.MkdirTemp(dir, besides+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(beside) }() // a folder of ours
	for _, s := range w.about.Stores {
		made := filepath.Join(beside, store.FileName)
		if err := store.Copy(filepath.Join(dir, filepath.FromSlash(s)), made); err != nil {
			return err
		}
		if w.about.Running { // nobody goes on from it: what only a coordinator needs is not in it
			if err := store.MarkRestored(beside, w.about.Copied); err != nil {
				return err
			}
		}
		if err := w.file(path.Join(s, store.FileName), made); err != nil {
			return err
		}
		if err := os.Remove(made); err != nil {
			return err
		}
	}
	return nil
}

// tries bounds how often a release is read that another one replaces meanwhile.
const tries = 5

// checkpoint adds the last release in a folder, whose files are of one version.
func (w *writer) checkpoint(dir, name string) error {
	from := filepath.Join(dir, filepath.FromSlash(name))
	if !w.about.Running { // nobody replaces it
		if _, err := os.Stat(filepath.Join(from, model.CheckpointFile)); errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was released
		}
		return w.folder(name, from)
	}
	described := func() (string, error) {
		b, err := os.ReadFile(filepath.Join(from, model.CheckpointFile))
		return string(b), err
	}
	beside, err := os.MkdirTemp(dir, besides+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(beside) }() // a folder of ours
	for try := range tries {
		before, err := described()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was released
		} else if err != nil {
			return err
		}
		made := filepath.Join(beside, fmt.Sprint(try))
		err = os.CopyFS(made, os.DirFS(from))
		after, again := described()
		if err == nil && again == nil && before == after {
			return w.folder(name, made)
		}
		if errors.Is(err, fs.ErrNotExist) || again == nil && before != after {
			continue // replaced meanwhile
		}
		return errors.Join(err, again)
	}
	return fmt.Errorf("%s: a release replaced the last one %d times while it was read: try again", from, tries)
}

// folder adds the files below a folder.
func (w *writer) folder(name, from string) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rest, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		return w.file(path.Join(name, filepath.ToSlash(rest)), at)
	})
}

// file adds a file under a name.
func (w *writer) file(name, at string) (err error) {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.head(name, info.Size()); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(f, info.Size())); err != nil {
		return err
	}
	w.about.Files = append(w.about.Files, File{name, info.Size(), digest(sum)})
	return nil
}

// head begins an entry.
func (w *writer) head(name string, size int64) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.about.Copied, Format: tar.FormatPAX}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (w *writer) manifest() error {
	b, err := json.MarshalIndent(w.about, "", " ")
	if err != nil {
		return err
	}
	if err := w.head(manifestName, int64(len(b))); err != nil {
		return err
	}
	_, err = w.tar.Write(b)
	return err
}

func digest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// Errors of Restore.
var (
	// ErrBroken is a file that is no backup, or a damaged one.
	ErrBroken = errors.New("this is no whole backup of starling")
	// ErrNotNewest is a backup of a coordinator that ran: it has released more since.
	ErrNotNewest = errors.New("the coordinator ran while it was copied, so that this is not its newest state")
	// ErrOccupied is a folder that holds something already.
	ErrOccupied = errors.New("the folder is not empty")
)

// Restore puts a backup into a folder that is empty or not there. With newest its coordinator may go on; else it is there
// to read, and serve refuses it. Either all of it is there at the end, or nothing.
func Restore(file, dir string, newest bool) (about About, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return about, fmt.Errorf("%s: %w", dir, ErrOccupied)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return about, err
	}
	f, err := os.Open(file)
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	half, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".restore-*") // 0700
	if err != nil {
		return about, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(half))
		}
	}()
	if about, err = unpack(f, half); err != nil {
		return about, fmt.Errorf("%s: %w", file, err)
	}
	if newest && about.Running {
		return about, ErrNotNewest
	}
	for _, f := range about.Files {
		// Every ledger, also one that the list does not call so.
		if newest || path.Base(f.Name) != store.FileName {
			continue
		}
		if err := store.MarkRestored(filepath.Join(half, filepath.FromSlash(path.Dir(f.Name))), about.Copied); err != nil {
			return about, err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return about, err
	}
	return about, os.Rename(half, dir)
}

// packed reads a backup. An error of its reader means that the backup is broken.
type packed struct{ io.Reader }

func (p packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return n, err
}

// unpack writes a backup's files into an empty folder, and holds them to its manifest.
func unpack(r io.Reader, dir string) (about About, err error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return about, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	var found []File
	entries := tar.NewReader(packed{z})
	for {
		head, err := entries.Next()
		if err != nil { // io.EOF, too: the manifest is missing
			return about, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		if head.Typeflag != tar.TypeReg || head.Size > maxFile || !filepath.IsLocal(filepath.FromSlash(head.Name)) || strings.Contains(head.Name, `\`) {
			return about, fmt.Errorf("%w: entry %.100q", ErrBroken, head.Name)
		}
		if head.Name == manifestName {
			break
		}
		f, err := write(filepath.Join(dir, filepath.FromSlash(head.Name)), entries)
		if err != nil {
			return about, err
		}
		f.Name = head.Name
		found = append(found, f)
	}
	b, err := io.ReadAll(io.LimitReader(entries, maxManifest))
	if err != nil {
		return about, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if _, err := entries.Next(); !errors.Is(err, io.EOF) {
		return about, fmt.Errorf("%w: more follows its list", ErrBroken)
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(packed{z}, maxManifest)); err != nil { // up to its checksum
		return about, fmt.Errorf("%w", err)
	}
	if err := json.Unmarshal(b, &about); err != nil {
		return about, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if !slices.Equal(found, about.Files) {
		return about, fmt.Errorf("%w: its files are not those of its list", ErrBroken)
	}
	if len(about.Stores) == 0 {
		return about, fmt.Errorf("%w: it holds no ledger", ErrBroken)
	}
	for _, s := range about.Stores {
		name := path.Join(s, store.FileName)
		if !slices.ContainsFunc(found, func(f File) bool { return f.Name == name }) {
			return about, fmt.Errorf("%w: it lacks %.100q", ErrBroken, name)
		}
	}
	return about, nil
}

// write writes a new file and folders above it.
func write(at string, from io.Reader) (f File, err error) {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return f, err
	}
	out, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return f, fmt.Errorf("%w: two entries are one file", ErrBroken)
	}
	if err != nil {
		return f, err
	}
	sum := sha256.New()
	f.Size, err = io.Copy(io.MultiWriter(out, sum), from)
	if errors.Is(err, io.ErrUnexpectedEOF) { // an archive that ends within an entry
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	f.SHA256 = digest(sum)
	return f, errors.Join(err, out.Sync(), out.Close())
}
