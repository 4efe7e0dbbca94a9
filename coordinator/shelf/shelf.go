// Package shelf keeps jobs' bases, first adapters and releases in one bucket for all owners. An
// owner that takes a job over fetches what its machine lacks, verified by the hashes in the store.
//
//	s := shelf.New(b, dir, local, log)
//	err := s.Load(ctx, &cfg, dir) // base and first adapter, by their hashes
package shelf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/bucket"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// sources is what a job is made of beside its file and its state, by hashes under which the
// bucket has it. It is in the store, which is trusted; the bucket is not.
type sources struct {
	Bucket   string  `json:"bucket"`
	Base     *source `json:"base,omitempty"` // nil: an embedded one, which every owner has
	Name     string  `json:"name"`           // and of what revision it was published: devices are told
	Revision string  `json:"revision,omitempty"`
	Start    *source `json:"start,omitempty"` // nil: the job begins with none
	// Method and Classes are the start's layout.
	Method  model.Method `json:"method"`
	Classes int          `json:"classes,omitempty"`
}

type source struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// fetchTries is how often a blob is asked for that was cut off.
const fetchTries = 3

// maxSource bounds what is fetched: a base's file, with its configuration and tokenizer.
const maxSource = 4<<30 + 64<<20

// Local holds a job's base and start on this machine.
type Local interface {
	// Base returns the job's base.
	Base(job.Job) (*model.Base, error)
	// Fill sets a configuration's base, the base's name and revision, and start from its job.
	Fill(*coordinator.Config) error
}

// Shelf exchanges bases, starts and releases between owners by way of a bucket. Without a bucket it does nothing.
type Shelf struct {
	bucket *bucket.Bucket // nil: none
	dir    string         // the server's, whose blobs/ has what was fetched
	local  Local
	log    *slog.Logger

	mu       sync.Mutex
	releases map[string]*bucket.Releases // guarded by mu; by job, which may be opened again
}

// New returns the shelf of a server whose folder is dir, over a bucket, nil for none. A nil log
// says nothing.
func New(from *bucket.Bucket, dir string, local Local, log *slog.Logger) *Shelf {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if from != nil {
		log = log.With("bucket", from.String())
	}
	return &Shelf{bucket: from, dir: dir, local: local, log: log, releases: map[string]*bucket.Releases{}}
}

// Load fills in base and start of a job whose state is in dir: from this machine, or, where it
// does not have them, from the bucket.
func (s *Shelf) Load(ctx context.Context, cfg *coordinator.Config, dir string) error {
	text, err := "", error(nil)
	if s.bucket != nil {
		if text, err = store.ReadSources(dir); err != nil {
			return err
		}
	}
	err = s.local.Fill(cfg)
	switch {
	case s.bucket == nil:
		return err
	case err == nil:
		return s.put(ctx, cfg, text)
	case text == "":
		return fmt.Errorf("%w; nor did another owner put it into %s yet: start serve where it is first", err, s.bucket)
	}
	s.log.Warn("base and start are taken from the bucket", "since", err)
	if e := s.fetch(ctx, cfg, text); e != nil {
		return fmt.Errorf("%w; and %w", err, e)
	}
	cfg.Sources = text
	return nil
}

// put gives the bucket what it does not have, unless known says that it was given it: an
// owner that has all of it needs no bucket to take over.
func (s *Shelf) put(ctx context.Context, cfg *coordinator.Config, known string) error {
	src := sources{Bucket: s.bucket.String(), Name: cfg.BaseName, Revision: cfg.BaseRevision}
	content := map[*source]io.ReaderAt{}
	if cfg.BaseName == "" || cfg.BaseRevision != "" { // no embedded one
		blob, err := cfg.Base.View()
		if err != nil {
			return err
		}
		sum, err := cfg.Base.SHA256()
		if err != nil {
			return err
		}
		src.Base = &source{hex.EncodeToString(sum[:]), blob.Size()}
		content[src.Base] = blob
	}
	if cfg.Start != nil {
		data, err := model.EncodeAdapter(cfg.Start)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		src.Start, src.Method, src.Classes = &source{hex.EncodeToString(sum[:]), int64(len(data))}, cfg.Start.Layout().Method, cfg.Start.Layout().Classes
		content[src.Start] = bytes.NewReader(data)
	}
	text, err := json.Marshal(src)
	if err != nil {
		return err
	}
	if cfg.Sources = string(text); cfg.Sources == known {
		return nil
	}
	for what, data := range content {
		sum, err := what.sum()
		if err != nil {
			return err
		}
		if err := s.bucket.Keep(ctx, sum, data, what.Size); err != nil {
			return err
		}
		s.log.Info("put into the bucket for other owners", "sha256", what.SHA256, "bytes", what.Size)
	}
	return nil
}

// fetch takes them from the bucket.
func (s *Shelf) fetch(ctx context.Context, cfg *coordinator.Config, text string) error {
	var src sources
	if err := json.Unmarshal([]byte(text), &src); err != nil {
		return fmt.Errorf("sources of the job in its store: %w", err)
	}
	var err error
	if src.Base == nil {
		cfg.Base, err = s.local.Base(cfg.Job)
	} else {
		var file *os.File
		if file, err = s.open(ctx, *src.Base); err == nil {
			cfg.Base, err = model.OpenBlob(file, src.Base.Size) // which keeps the file
		}
	}
	if err != nil {
		return err
	}
	cfg.BaseName, cfg.BaseRevision = src.Name, src.Revision
	if src.Start == nil {
		return nil
	}
	layout, err := model.NewLayout(cfg.Base.Config, src.Method, src.Classes)
	if err != nil {
		return err
	}
	file, err := s.open(ctx, *src.Start)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	cfg.Start, err = model.ParseAdapter(layout, data)
	return err
}

func (s source) sum() (sum [32]byte, err error) {
	b, err := hex.DecodeString(s.SHA256)
	if err != nil || len(b) != len(sum) || s.Size < 1 || s.Size > maxSource {
		return sum, fmt.Errorf("sources of the job in its store: %d bytes of hash %.70q, want 1..%d", s.Size, s.SHA256, int64(maxSource))
	}
	return [32]byte(b), nil
}

// open is the file of a source, verified, which is fetched where it is not there yet.
func (s *Shelf) open(ctx context.Context, what source) (*os.File, error) {
	sum, err := what.sum()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "blobs", what.SHA256)
	if file, err := verified(path, sum); err == nil {
		return file, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("fetched again", "file", path, "since", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := durable.ReplaceFrom(path, fetching{ctx, s.bucket, sum, what.Size}, 0o600)
		if err == nil {
			break
		}
		if try == fetchTries || ctx.Err() != nil || errors.Is(err, bucket.ErrAbsent) || errors.Is(err, bucket.ErrContent) {
			return nil, err
		}
		s.log.Warn("the bucket did not answer in full: fetching again from the beginning", "error", err)
	}
	s.log.Info("fetched from the bucket", "sha256", what.SHA256, "bytes", what.Size)
	return verified(path, sum)
}

// fetching is a blob of the bucket; an error ends the file that it is written to.
type fetching struct {
	ctx  context.Context
	from *bucket.Bucket
	sum  [32]byte
	size int64
}

func (f fetching) WriteTo(w io.Writer) (int64, error) {
	return f.size, f.from.Fetch(f.ctx, f.sum, f.size, w)
}

// verified opens a file whose content has the hash.
func verified(path string, want [32]byte) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err = io.Copy(h, file); err == nil && [32]byte(h.Sum(nil)) != want {
		err = fmt.Errorf("%s: %w", path, bucket.ErrContent)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Release has a job's releases put into the bucket below a name, and tells the coordinator
// what is there.
func (s *Shelf) Release(ctx context.Context, cfg *coordinator.Config, name string) {
	if s.bucket == nil {
		return
	}
	b := s.bucket.Below(name)
	brief, cancel := context.WithTimeout(ctx, newestPatience) // devices wait for who takes over
	text, err := b.ReadNewest(brief)
	cancel()
	if err == nil && text != nil {
		var info model.CheckpointInfo
		if info, err = model.ParseCheckpointInfo(text); err == nil {
			cfg.Elsewhere = &info
		}
	}
	if err != nil { // an owner that takes over needs its base and its database: a bucket that is away stops none
		s.log.Warn("what was released last is not known from the bucket", "error", err)
	}
	s.mu.Lock()
	releases := s.releases[name]
	if releases == nil {
		releases = b.Releases(s.log)
		s.releases[name] = releases
	}
	s.mu.Unlock()
	cfg.Released = func(version int, dir string) {
		files := map[string][]byte{}
		for _, name := range []string{model.AdapterFile, model.AdapterConfigFile, model.CardFile, model.CheckpointFile} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) && name == model.AdapterConfigFile { // PEFT knows no such method
				continue
			}
			if err != nil {
				s.log.Error("the release cannot be read for the bucket", "error", err)
				return
			}
			files[name] = data
		}
		releases.Put(version, files, files[model.CheckpointFile])
	}
}

// newestPatience is how long a start waits to be told what was released last.
const newestPatience = 3 * time.Second

// releasePatience is how long a server's end waits for the last releases to be in the bucket.
const releasePatience = time.Minute

// End waits for the last releases to be in the bucket, a minute at most, after the last round.
func (s *Shelf) End(ctx context.Context) {
	patience := releasePatience
	if ctx.Err() != nil { // the next start puts them there
		patience /= 10
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var all sync.WaitGroup
	s.mu.Lock()
	releases := slices.Collect(maps.Values(s.releases))
	s.mu.Unlock()
	for _, r := range releases {
		all.Go(func() { r.Close(ctx) })
	}
	all.Wait()
}
