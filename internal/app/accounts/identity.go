package accounts

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/starling-fl/starling/edge"
)

// IdentityPath returns the default path of a data file's identity. Each file has its own, so that
// two files can take part at once and the same data cannot take part twice.
func IdentityPath(data string) (string, error) {
	name, err := dataName(data)
	if err != nil {
		return "", err
	}
	return UserPath("", os.UserConfigDir, "identity-"+name+".pem")
}

// dataName tells a data file from others of its name.
func dataName(data string) (string, error) {
	at, err := realPath(data)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(at))
	return fmt.Sprintf("%s-%x", filepath.Base(at), sum[:4]), nil
}

// TakeIdentity loads an identity, or makes it, and holds it until release is
// called: at one coordinator at a time.
func TakeIdentity(path string) (key ed25519.PrivateKey, release func() error, err error) {
	if key, err = edge.LoadIdentity(path); err != nil {
		return nil, nil, err
	}
	release, err = hold(path, "identity", "for other data give this one its own: --identity FILE")
	return key, release, err
}

// hold keeps other processes from a file.
func hold(path, what, advice string) (release func() error, err error) {
	lock := flock.New(path + ".lock")
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w", path, err)
	}
	if !held {
		return nil, fmt.Errorf("the %s takes part already, in another 'starling join' on this machine (%s): one job at a time; %s", what, path, advice)
	}
	return lock.Unlock, nil
}

// UserPath returns the path given or, with "", a file below the folder that dir tells of this user,
// which is made.
func UserPath(given string, dir func() (string, error), name string) (string, error) {
	if given != "" {
		return given, nil
	}
	d, err := dir()
	if err != nil {
		return "", fmt.Errorf("no default folder: %w", err)
	}
	d = filepath.Join(d, "starling")
	if err := os.MkdirAll(d, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(d, name), nil
}
