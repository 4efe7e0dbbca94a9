// Package durable puts files on disk so that a crash or a power cut at any moment leaves a whole
// file: the old one, or the new one, and the new one once the call has returned. A file is written
// under a temporary name, flushed, renamed, and the folder that holds the name is flushed (Pillai
// et al. 2014, "All File Systems Are Not Created Equal", section 4.4).
//
// A crash can leave a temporary file, ".NAME.tmp-*", behind; it is never read.
package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// disk is what a write asks of the system: the tests' disk forgets whatever was
// not flushed.
type disk interface {
	create(path string) (file, error) // new, mode 0600
	rename(from, to string) error
	link(from, to string) error
	remove(path string) error
	sync(dir string) error // the names in a folder
}

type file interface {
	Name() string
	Write(b []byte) (int, error)
	Chmod(mode fs.FileMode) error
	Sync() error
	Close() error
}

// Replace gives path the content data and the mode perm, in place of whatever
// was there. The folder must exist.
func Replace(path string, data []byte, perm fs.FileMode) error {
	return put(system{}, path, bytes.NewReader(data), perm, disk.rename)
}

// ReplaceFrom is Replace for content that is too large to hold.
func ReplaceFrom(path string, content io.WriterTo, perm fs.FileMode) error {
	return put(system{}, path, content, perm, disk.rename)
}

// Create makes the file path. If there is one it is left alone and the error
// is fs.ErrExist, so that of two processes that start at once both can use the
// same. The folder must exist.
func Create(path string, data []byte, perm fs.FileMode) error {
	return put(system{}, path, bytes.NewReader(data), perm, disk.link)
}

// Link makes the file path a second name of the file from, which must have been flushed
// and is not to be written in place. If there is one it is left alone and the error is
// fs.ErrExist; a file system without hard links has an error of its own.
func Link(from, path string) error { return link(system{}, from, path) }

func link(d disk, from, path string) error {
	if err := d.link(from, path); err != nil {
		return err
	}
	if err := d.sync(filepath.Dir(path)); err != nil {
		return fmt.Errorf("flush the folder of %s: %w", path, err)
	}
	return nil
}

// put writes under a temporary name and lets place give it its own.
func put(d disk, path string, content io.WriterTo, perm fs.FileMode, place func(d disk, from, to string) error) error {
	f, err := d.create(path)
	if err != nil {
		return fmt.Errorf("create a file next to %s: %w", path, err)
	}
	_, err = content.WriteTo(f)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = place(d, f.Name(), path)
	}
	// After a rename there is nothing left to remove.
	if left := d.remove(f.Name()); left != nil && !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := d.sync(filepath.Dir(path)); err != nil {
		return fmt.Errorf("flush the folder of %s: %w", path, err)
	}
	return nil
}

// system is the operating system's disk.
type system struct{}

func (system) create(path string) (file, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
}

func (system) rename(from, to string) error { return os.Rename(from, to) }

func (system) link(from, to string) error { return os.Link(from, to) }

func (system) remove(path string) error { return os.Remove(path) }

func (system) sync(dir string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		return nil // folders cannot be flushed there; NTFS logs its names
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
