package model

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// holdsBase reports whether an earlier checkpoint in dir is over the base of that
// hash, all of it: starling.json is written after the base.
func holdsBase(dir, sha256 string) bool {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, CheckpointBase, name))
		return err == nil
	}
	if !has(ConfigFile) || !has(WeightsFile) || !has(TokenizerFile) && !has(preprocessorFile) && !has(SentencePieceFile) {
		return false
	}
	meta, err := ReadFile(os.DirFS(dir), CheckpointFile, maxJSON)
	if err != nil {
		return false
	}
	info, err := ParseCheckpointInfo(meta)
	return err == nil && info.BaseSHA256 == sha256
}

// linkFrom gives the checkpoint that is to be in dir the base of the first of the others
// that hold the same, by second names of their files; false where there is none, or where
// the file system has no such names. Files of ours are replaced and never written in
// place, so that neither changes with the other; anyone who reads one checks its hash.
func (r Release) linkFrom(others []string, dir string, info CheckpointInfo) bool {
	at := slices.IndexFunc(others, func(other string) bool {
		meta, err := ReadFile(os.DirFS(other), CheckpointFile, maxJSON)
		if err != nil || !holdsBase(other, info.BaseSHA256) {
			return false
		}
		theirs, err := ParseCheckpointInfo(meta)
		return err == nil && slices.Equal(theirs.Labels, info.Labels)
	})
	files, err := r.beside()
	if at < 0 || err != nil {
		return false
	}
	to := filepath.Join(dir, CheckpointBase)
	if os.MkdirAll(to, 0o755) != nil {
		return false
	}
	for _, name := range append(sortedKeys(files), WeightsFile) {
		from := filepath.Join(others[at], CheckpointBase, name)
		if err := durable.Link(from, filepath.Join(to, name)); errors.Is(err, fs.ErrExist) && sameFile(from, filepath.Join(to, name)) {
			continue // of a call that was cut off
		} else if err != nil {
			return false
		}
	}
	return true
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}
