package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	defaultSchema = "lodge"
	schemaVersion = 2
	patience      = 5 * time.Second  // to reach a server that restarts, before a call fails
	answerTime    = 30 * time.Second // for one transaction of ours; a commit may wait for a standby
	checkEvery    = time.Second
	openWait      = time.Second // for a dead process's lock to go
	readConns     = 8
	writeConns    = 4 // for blobs; the leader of the group has one more, and the lock one
)

// schema is version 2. holder is who may write. turn names the last group committed: a process that
// lost its session within a commit looks there for the outcome. A blob's name is null until it is
// committed; size is then its length, and its chunks are numbered from 0, each of chunkBytes but
// the last. The blob's writer draws the id, at random: a sequence would give one twice when the
// server crashed between. The reference removes a blob's chunks with it, and rejects chunks of a
// removed blob.
const schema = `
CREATE TABLE holder (
	one         boolean PRIMARY KEY DEFAULT true CHECK (one),
	version     integer NOT NULL,
	incarnation text NOT NULL
);
CREATE TABLE turn (
	one  boolean PRIMARY KEY DEFAULT true CHECK (one),
	last text NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE records (
	key   text COLLATE "C" PRIMARY KEY,
	value bytea NOT NULL
);
CREATE TABLE blobs (
	id   bigint PRIMARY KEY,
	name text COLLATE "C" UNIQUE,
	size bigint NOT NULL
);
CREATE TABLE chunks (
	blob  bigint NOT NULL REFERENCES blobs ON DELETE CASCADE,
	index bigint NOT NULL,
	data  bytea NOT NULL,
	PRIMARY KEY (blob, index)
);
ALTER TABLE records ALTER COLUMN value SET STORAGE EXTERNAL;
ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;
INSERT INTO turn (last) VALUES ('');
`

// postgres is the store on a PostgreSQL server.
type postgres struct {
	schema      string
	incarnation string // of this process, in holder
	lineage     string
	config      *pgx.ConnConfig // for sessions outside the pools
	reads       *pgxpool.Pool
	writes      *pgxpool.Pool // for blobs
	group       *group
	leader      *pgx.Conn // of the group, in turns with the functions that it runs; nil: to be connected
	cache       cache     // reads or writes of the leader's session

	ctx     context.Context // until Close
	cancel  context.CancelFunc
	watcher sync.WaitGroup

	mu     sync.Mutex
	fatal  error // ErrFenced, ErrLineage or ErrClosed: for good
	sick   error // result of the last check
	closed bool
}

// OpenPostgres opens or makes the store in a schema of a PostgreSQL database, and takes over the
// right to write there from a process that has ended; a live one is refused with ErrInUse. The
// schema is the search_path of the DSN, or "lodge". It must be reached directly or through a pooler
// of sessions, not of transactions.
//
// It rejects, then and later, a server that may lose acknowledged writes: a standby; one with fsync
// or full_page_writes off; one with a standby that is not synchronous, which would be without the
// last updates when it is promoted. (A running pg_basebackup does not count as a standby.) To see
// where the server sends its WAL, the role must be in pg_monitor. A promoted standby, and a
// restored backup that was recovered from archived WAL, have another timeline and so another
// Lineage; a server that was put back by copying its files and just started has not, and nothing
// here notices it.
//
// Erased or overwritten data stays on the server for a while: old versions of rows live until they
// are vacuumed and their pages used again, and in WAL, its archive, standbys and backups for as
// long as their owner keeps those. That retention decides when an erased blob cannot be had from
// the server's disks any more.
func OpenPostgres(ctx context.Context, dsn string) (Store, error) {
	p := &postgres{incarnation: rand.Text()}
	config, err := p.configure(dsn)
	if err != nil {
		return nil, err
	}
	p.config = config.ConnConfig.Copy()
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	lock, err := p.takeOver(ctx)
	if err != nil {
		p.cancel()
		return nil, err
	}
	if p.writes, err = p.pool(config, writeConns); err == nil {
		config.ConnConfig.RuntimeParams[idleTimeout] = "0" // a view may take its time, and holds no locks
		p.reads, err = p.pool(config, readConns)
	}
	if err != nil {
		p.cancel()
		p.hangUp(lock)
		return nil, fmt.Errorf("store: %w", err)
	}
	p.group = newGroup(p.begin)
	p.watcher.Go(func() { p.watch(lock) })
	return p, nil
}

func (p *postgres) pool(config *pgxpool.Config, conns int32) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = conns, 0, 0
	return pgxpool.NewWithConfig(p.ctx, config)
}

const idleTimeout = "idle_in_transaction_session_timeout"

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// configure takes the schema out of the DSN, and gives every session the settings that the store
// relies on.
func (p *postgres) configure(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err) // without the password
	}
	set := config.ConnConfig.RuntimeParams
	if p.schema = set["search_path"]; p.schema == "" {
		p.schema = defaultSchema
	}
	if !plainName.MatchString(p.schema) {
		return nil, fmt.Errorf("%w: search_path %q is not the plain name of one schema", ErrInvalid, p.schema)
	}
	for name, value := range map[string]string{
		"search_path":                   p.schema,
		"client_encoding":               "UTF8",
		"default_transaction_isolation": "read committed",
		"default_transaction_read_only": "off",
		"lock_timeout":                  "10s",
		"statement_timeout":             "0",
		idleTimeout:                     "60s", // a process cut off keeps its locks no longer
		"tcp_keepalives_idle":           "10",
		"tcp_keepalives_interval":       "5",
		"tcp_keepalives_count":          "3",
		// Everything goes by primary keys. A planner without statistics might sort whole ranges for
		// each page of a scan.
		"enable_seqscan":    "off",
		"enable_bitmapscan": "off",
		// And compiling never pays, although the planner then gives a scan of a table with one row
		// the price of the disabled plans.
		"jit": "off",
	} {
		set[name] = value
	}
	if set["application_name"] == "" {
		set["application_name"] = "lodge"
	}
	config.ConnConfig.OnNotice = noteWarning
	config.AfterConnect = p.greet
	return config, nil
}

// connect makes a session outside the pools.
func (p *postgres) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, p.config.Copy())
	if err != nil {
		return nil, err
	}
	if err := p.greet(ctx, conn); err != nil {
		p.hangUp(conn)
		return nil, err
	}
	return conn, nil
}

// hangUp ends a session. One that cannot be ended in order is cut off.
func (p *postgres) hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// lockID is the advisory lock of the store. Advisory locks are of a database; the schema is part of
// this one.
func (p *postgres) lockID() int64 {
	sum := sha256.Sum256([]byte("lodge store " + p.schema))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// takeOver locks the store against other processes, and makes this one its holder. The lock lasts
// as long as the session that it returns.
func (p *postgres) takeOver(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	if err = p.lock(ctx, conn); err == nil {
		err = p.hold(ctx, conn)
	}
	if err != nil {
		p.hangUp(conn)
		return nil, wrap(err)
	}
	return conn, nil
}

func (p *postgres) lock(ctx context.Context, conn *pgx.Conn) error {
	for start := time.Now(); ; {
		var ours bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, p.lockID()).Scan(&ours); err != nil {
			return err
		}
		if ours {
			return nil
		}
		if time.Since(start) > openWait {
			return fmt.Errorf("%w: schema %q of database %q", ErrInUse, p.schema, conn.Config().Database)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// hold makes or checks the schema, fences off the former holder, and erases its unfinished blobs.
func (p *postgres) hold(ctx context.Context, conn *pgx.Conn) error {
	var encoding string
	var hasSchema, hasTables bool
	err := conn.QueryRow(ctx, `SELECT current_setting('server_encoding'),
		EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text),
		to_regclass($1::text || '.holder') IS NOT NULL`, p.schema).Scan(&encoding, &hasSchema, &hasTables)
	if err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: the database's encoding is %s, not UTF8", ErrInvalid, encoding)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after Commit: nothing
	if !hasSchema {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{p.schema}.Sanitize()); err != nil {
			return err
		}
	}
	if !hasTables {
		if _, err := tx.Exec(ctx, schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO holder (version, incarnation) VALUES ($1, '')`, schemaVersion); err != nil {
			return err
		}
	}
	var version int
	err = tx.QueryRow(ctx, `UPDATE holder SET incarnation = $1 RETURNING version`, p.incarnation).Scan(&version)
	if err != nil {
		return err
	}
	if version != schemaVersion {
		return fmt.Errorf("%w: schema %q has version %d; this program knows %d", ErrInvalid, p.schema, version, schemaVersion)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM blobs WHERE name IS NULL`); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (p *postgres) Lineage() string { return p.lineage }

func (p *postgres) Update(f func(Tx) error) error { return p.group.update(f) }

// View does not wait for writers, nor they for it.
func (p *postgres) View(f func(Tx) error) error {
	var result error
	err := p.reading(func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(p.ctx) }() // nothing to keep
		t := &transaction{reads: &pgReader{p: p, conn: conn}}
		defer func() { t.ended = true }()
		result = f(t)
		return nil
	})
	if err != nil {
		return err
	}
	return result
}

// reading lends a session to f, and another one when the answer is that it was lost.
func (p *postgres) reading(f func(context.Context, *pgx.Conn) error) error {
	if err := p.ended(); errors.Is(err, ErrClosed) {
		return err
	}
	return wrap(p.trying(p.reads, f))
}

func (p *postgres) Size() (size int64, err error) {
	err = p.reading(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&size)
	})
	return size, err
}

// trying runs f on sessions of the pool until one is not lost, or patience ends.
func (p *postgres) trying(pool *pgxpool.Pool, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(p.ctx, answerTime)
	defer cancel()
	for start := time.Now(); ; {
		conn, err := pool.Acquire(ctx)
		again := unreachable(err)
		if err == nil {
			err = f(ctx, conn.Conn())
			again = undecided(conn.Conn(), err) || undone(err)
			if err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
				p.hangUp(conn.Conn())
			}
			conn.Release()
		}
		if !again {
			return err
		}
		if err := p.noted(err); p.ended() != nil || time.Since(start) > patience {
			return err
		}
		pool.Reset() // the other sessions are likely to be lost, too
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *postgres) Close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	p.group.close()
	if !first {
		return nil
	}
	p.reads.Close() // after the views that run
	p.writes.Close()
	p.cancel()
	if p.leader != nil {
		p.hangUp(p.leader)
	}
	p.watcher.Wait()
	return nil
}
