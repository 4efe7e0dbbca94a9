package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// URLFile, in a folder, names the PostgreSQL database that holds the folder's state in
// place of [FileName]. It may hold a password, so its mode is 0600.
const URLFile = "starling.url"

// place is where a store lies: a SQLite file of a folder, or a schema of a database.
type place struct {
	dir    string
	server string // a URL without ours of its parameters; "": SQLite
	root   string // the schema of the folder that names the database
	schema string // below root as dir is below that folder
}

// placeOf says where a folder's state lies. A server's folder names the database for its
// fleet and for its jobs.
func placeOf(dir string) (place, error) {
	p := place{dir: dir}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return p, fmt.Errorf("store: %w", err)
	}
	above, name := filepath.Dir(whole), filepath.Base(whole)
	at, below := []string{whole}, []string{""}
	if name == FleetFolder {
		at, below = append(at, above), append(below, "/"+name)
	}
	if filepath.Base(above) == "jobs" && hostedName.MatchString(name) {
		at, below = append(at, filepath.Dir(above)), append(below, "/jobs/"+name)
	}
	for i, folder := range at {
		text, err := os.ReadFile(filepath.Join(folder, URLFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = guard(folder)
		}
		if err != nil {
			return p, fmt.Errorf("store: %w", err)
		}
		if p.server, p.root, err = parseURL(strings.TrimSpace(string(text))); err != nil {
			return p, fmt.Errorf("%s: %w", filepath.Join(folder, URLFile), err)
		}
		p.schema = p.root + below[i]
		return p, nil
	}
	return p, nil
}

// below is the place of a folder inside this one.
func (p place) below(name string) place {
	p.dir = filepath.Join(p.dir, filepath.FromSlash(name))
	if p.server != "" {
		p.schema += "/" + name
	}
	return p
}

// String says where it is, without a password.
func (p place) String() string {
	if p.server == "" {
		return filepath.Join(p.dir, FileName)
	}
	u, err := url.Parse(p.server)
	if err != nil {
		return "schema " + p.schema
	}
	return fmt.Sprintf("schema %q of %s", p.schema, u.Redacted())
}

// A schema's name has at most 63 bytes, of which "/jobs/" and a job's name may take 46.
var schemaName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,15}$`)

// parseURL takes the schema out of a database's URL: the driver would tell the server of it.
func parseURL(text string) (server, schema string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", "", fmt.Errorf("%w: a database's URL, want postgres://USER@HOST/DATABASE", ErrRequest) // which may hold a password
	}
	q := u.Query()
	if schema = q.Get("schema"); schema == "" {
		schema = "starling"
	}
	if !schemaName.MatchString(schema) {
		return "", "", fmt.Errorf("%w: schema %.40q, want 1 to 16 of a-z, 0-9 and _, the first a letter", ErrRequest, schema)
	}
	q.Del("schema")
	u.RawQuery = q.Encode()
	if _, err := connection(u.String(), schema); err != nil {
		return "", "", fmt.Errorf("%w: the database's URL: %w", ErrRequest, err)
	}
	return u.String(), schema, nil
}

// UseDatabase makes a folder keep its state in a PostgreSQL database
// (postgres://USER@HOST/DATABASE, with ?schema=NAME if one database serves several servers). The
// error is ErrRequest if the folder has state already, of its own or in another database.
func UseDatabase(dir, database string) error {
	if _, _, err := parseURL(database); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, file := range []string{filepath.Join(dir, FileName), filepath.Join(dir, FleetFolder, FileName)} {
		if _, err := os.Stat(file); err == nil {
			return fmt.Errorf("%w: %s holds the folder's state: give another folder for a database's", ErrRequest, file)
		}
	}
	path := filepath.Join(dir, URLFile)
	was, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, []byte(database+"\n"), 0o600)
	} else if err == nil && strings.TrimSpace(string(was)) != database {
		return fmt.Errorf("%w: %s names another database", ErrRequest, path)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
