//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// other is the user as whom root's tests run it; nil: as who runs them.
func other() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, wrong := strconv.ParseUint(u.Gid, 10, 32)
	if err = errors.Join(err, wrong); err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func asOther(cmd *exec.Cmd) error {
	who, err := other()
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	return err
}

// owned gives a folder to that user.
func owned(dir string) error {
	who, err := other()
	if who != nil {
		err = os.Chown(dir, int(who.Uid), int(who.Gid))
	}
	return err
}
