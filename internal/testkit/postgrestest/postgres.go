// Package postgrestest starts PostgreSQL servers of the tests' own, as Debian's package
// postgresql installs them. They keep nothing, and are reached by a socket in a folder.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// ErrAbsent: there is no PostgreSQL on this machine.
var ErrAbsent = errors.New("PostgreSQL is not installed (Debian: postgresql)")

// Server is a running PostgreSQL server.
type Server struct {
	dir, bin string
}

// most bounds each of its commands.
const most = time.Minute

// Start makes and starts a server; ErrAbsent if there is none on this machine.
func Start() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "starling-postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{dir, bin}
	if err = owned(dir); err == nil {
		err = s.run("initdb", "--no-sync", "--auth=trust", "--username=starling", "--pgdata="+s.data())
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// binaries is the folder of the newest one that is installed.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, e := exec.LookPath("initdb"); e == nil {
		found = append(found, path)
	}
	if err != nil || len(found) == 0 {
		return "", errors.Join(ErrAbsent, err)
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs one of its programs, as somebody who is not root: it refuses to be.
func (s *Server) run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	if err := asOther(cmd); err != nil {
		return err
	}
	// A file: the server inherits it, and a pipe would be waited for.
	out, err := os.CreateTemp("", "starling-postgres-log")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, unread := os.ReadFile(out.Name())
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, said)
	}
	return errors.Join(err, unread, out.Close(), os.Remove(out.Name()))
}

func (s *Server) start() error {
	return s.run("pg_ctl", "start", "--wait", "--silent", "--pgdata="+s.data(), "--log="+filepath.Join(s.dir, "log"),
		"--options=-F -c listen_addresses='' -c max_connections=200 -c unix_socket_directories='"+s.dir+"'")
}

// URL is its database.
func (s *Server) URL() string {
	return "postgres://starling@/postgres?host=" + url.QueryEscape(s.dir)
}

// Restart stops it as an operator would, sessions and all, and starts it again.
func (s *Server) Restart() error {
	return errors.Join(s.halt(), s.start())
}

func (s *Server) halt() error {
	return s.run("pg_ctl", "stop", "--wait", "--silent", "--mode=fast", "--pgdata="+s.data())
}

// Stop ends it and removes what it kept.
func (s *Server) Stop() error {
	return errors.Join(s.run("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate", "--pgdata="+s.data()), os.RemoveAll(s.dir))
}
