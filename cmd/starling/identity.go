package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/starling-fl/starling/edge"
)

// identityPath is where a data file's identity is kept if none is given: each
// file has its own, so that two of them can take part beside each other on one
// machine, and the same data never does so twice, which would count it double.
func identityPath(data string) (string, error) {
	at, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	sum := sha256.Sum256([]byte(at))
	return userPath("", os.UserConfigDir, fmt.Sprintf("identity-%s-%x.pem", filepath.Base(at), sum[:4]))
}

// takeIdentity loads an identity, or makes it, and holds it for one coordinator
// until release is called.
func takeIdentity(path, token string) (key ed25519.PrivateKey, release func() error, err error) {
	if key, err = edge.LoadIdentity(path); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(token))
	lock := flock.New(fmt.Sprintf("%s.%x.lock", path, sum[:4]))
	held, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("lock of the identity %s: %w", path, err)
	}
	if !held {
		return nil, nil, fmt.Errorf("the identity %s takes part already, in another 'starling join' on this machine; "+
			"for other data give this one its own: --identity FILE", path)
	}
	return key, lock.Unlock, nil
}

// interrupted is the end of a command by a signal.
type interrupted struct{ signal int }

func (i interrupted) Error() string { return "interrupted" }

// exitCode is what a shell says of a command that the signal ended.
func (i interrupted) exitCode() int { return 128 + i.signal }

// interruption is the signal that ended ctx, if one did.
func interruption(ctx context.Context) (interrupted, bool) {
	var i interrupted
	ok := errors.As(context.Cause(ctx), &i)
	return i, ok
}
