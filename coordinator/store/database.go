package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// database is SQLite or PostgreSQL under one set of statements: both know $1 and
// ON CONFLICT. Where they differ is in this file.
type database struct {
	*sql.DB
	postgres bool
}

// Bounds of PostgreSQL's sessions. One that is paused in a transaction keeps others from
// writing until the server ends it.
const (
	mostIdle    = 3 * time.Second  // within a transaction
	mostLocked  = 10 * time.Second // waiting for another's
	mostRestart = 15 * time.Second // until the server is back
	mostOpen    = 4                // connections
)

// SQLite's ways of opening a file.
const (
	writing = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=secure_delete(1)&_txlock=immediate"
	beside  = "mode=rw&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock=immediate"
	reading = "mode=ro&_pragma=busy_timeout(5000)"
)

// open opens a place, the SQLite file in one of its ways.
func (p place) open(way string) (*database, error) {
	if p.server == "" {
		path := filepath.Join(p.dir, FileName)
		if way == writing { // SQLite gives its other files the mode of this one
			f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				return nil, fmt.Errorf("store: %w", err)
			}
		}
		db, err := sql.Open("sqlite", dsn(path, way))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		// One connection: transactions queue here and not on SQLite's lock.
		db.SetMaxOpenConns(1)
		return &database{db, false}, nil
	}
	config, err := connection(p.server, p.schema)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db := sql.OpenDB(patient{stdlib.GetConnector(*config)})
	db.SetMaxOpenConns(mostOpen)
	db.SetMaxIdleConns(mostOpen)
	return &database{db, true}, nil
}

func dsn(path, query string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	return u.String()
}

// connection is how a schema is reached.
func connection(server, schema string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return nil, fmt.Errorf("connection: %w", err) // without the password
	}
	for key, value := range map[string]string{
		"application_name": "starling", "search_path": `"` + schema + `"`,
		"synchronous_commit":                  "on", // what is acknowledged is on the disk, whatever the server's default
		"idle_in_transaction_session_timeout": strconv.FormatInt(mostIdle.Milliseconds(), 10),
		"lock_timeout":                        strconv.FormatInt(mostLocked.Milliseconds(), 10),
	} {
		config.RuntimeParams[key] = value
	}
	return config, nil
}

// patient dials again while the server restarts: no transaction has begun yet.
type patient struct{ driver.Connector }

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	for end := time.Now().Add(mostRestart); ; {
		conn, err := p.Connector.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		if !restarting(err) || time.Now().After(end) {
			return nil, fmt.Errorf("PostgreSQL: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// restarting reports whether an error is of a server that is away or not ready yet.
func restarting(err error) bool {
	return away(err) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// away reports whether an error is of a connection that is gone, and not of what was asked.
func away(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		// operator_intervention and connection_exception, idle_in_transaction_session_timeout, and
		// read_only_sql_transaction: a server that another one is about to replace
		return strings.HasPrefix(said.Code, "57P") || strings.HasPrefix(said.Code, "08") || said.Code == "25P03" || said.Code == "25006"
	}
	var link interface{ Timeout() bool } // of a socket
	return errors.As(err, &link) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || pgconn.SafeToRetry(err)
}

// again asks anew while the server is away.
func (d *database) again(ask func() error) {
	for end := time.Now().Add(mostRestart); away(ask()) && d.postgres && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
}

// Query is sql.DB's Query, tried again while the database is away.
func (d *database) Query(query string, args ...any) (rows *sql.Rows, err error) {
	d.again(func() error {
		rows, err = d.DB.Query(query, args...)
		return err
	})
	return rows, err
}

// QueryRow is sql.DB's QueryRow, tried again while the database is away.
func (d *database) QueryRow(query string, args ...any) (row *sql.Row) {
	d.again(func() error {
		row = d.DB.QueryRow(query, args...)
		return row.Err()
	})
	return row
}

// exists reports whether there is a store.
func (p place) exists() (is bool, err error) {
	if p.server == "" {
		_, err := os.Stat(filepath.Join(p.dir, FileName))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, ended(err)
	}
	db, err := p.open(reading)
	if err != nil {
		return false, err
	}
	is, err = db.made()
	return is, ended(errors.Join(err, db.Close()))
}

// made reports whether a schema was begun.
func (d *database) made() (is bool, err error) {
	err = d.QueryRow(`SELECT to_regclass('meta') IS NOT NULL`).Scan(&is)
	return is, err
}

const metaSchema = `CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`

// prepare makes what statements count on.
func (p place) prepare(d *database) error {
	if !d.postgres {
		_, err := d.Exec(metaSchema)
		return err
	}
	if is, err := d.made(); err != nil || is {
		return err
	}
	tx, err := d.DB.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Several may begin at once. The functions are SQLite's hex and RAISE.
	_, err = tx.Exec(`SELECT pg_advisory_xact_lock(7327841);
		CREATE SCHEMA IF NOT EXISTS "` + p.schema + `";
		CREATE OR REPLACE FUNCTION hex(b BYTEA) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$ SELECT upper(encode(b, 'hex')) $$;
		CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
		` + leaseSchema + d.dialect(metaSchema))
	if err != nil {
		return err
	}
	return tx.Commit()
}

// ours to PostgreSQL's, in this order.
var dialects = []struct {
	ours *regexp.Regexp
	its  string
}{
	{regexp.MustCompile(`\) WITHOUT ROWID`), `)`},
	{regexp.MustCompile(`\bBLOB\b`), `BYTEA`},
	{regexp.MustCompile(`\bINTEGER\b`), `BIGINT`},
	{regexp.MustCompile(`\bREAL\b`), `DOUBLE PRECISION`},
	{regexp.MustCompile(`BEFORE DELETE ON`), `BEFORE DELETE OR TRUNCATE ON`},
	{regexp.MustCompile(`CREATE TRIGGER (?:IF NOT EXISTS )?(\w+ BEFORE [A-Z ]+ ON \w+) BEGIN SELECT RAISE\(ABORT, ('[^']*')\); END`),
		`CREATE OR REPLACE TRIGGER $1 FOR EACH STATEMENT EXECUTE FUNCTION refuse($2)`},
}

// dialect is the text of a schema, which is written for SQLite, for this database.
func (d *database) dialect(schema string) string {
	if d.postgres {
		for _, r := range dialects {
			schema = r.ours.ReplaceAllString(schema, r.its)
		}
	}
	return schema
}

// begin begins a transaction that writes: nobody else's writes until it ends.
func (d *database) begin() (*sql.Tx, error) {
	tx, err := d.DB.Begin()
	if err == nil && d.postgres {
		if _, err = tx.Exec(`LOCK TABLE meta IN EXCLUSIVE MODE`); err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return tx, err
}

// snapshot begins one that reads, and sees one moment.
func (d *database) snapshot() (*sql.Tx, error) {
	if d.postgres {
		return d.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	}
	return d.DB.Begin()
}

// next is the number of a table's next row: no number is left out where a transaction is
// taken back, as it would be in a sequence.
func next(table string) string { return `(SELECT coalesce(max(id), 0) + 1 FROM ` + table + `)` }

// holders are "$1, $2, ...".
func holders(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(i + 1))
	}
	return b.String()
}

// plain is text as both keep it: PostgreSQL refuses what is not UTF-8, and NUL.
func plain(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
