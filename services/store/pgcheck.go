package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// serverSQL queries the settings that decide whether the server keeps acknowledged writes. It takes
// less than 0.1 ms, so every write transaction asks first. Values of a standby that the role may
// not see are null.
//
// A base backup does not count as a standby. pg_basebackup has a session in the state backup and,
// with -X stream, another that gets WAL like a standby. The name proves nothing, because standbys
// may have it, too; but a standby reports how far it has replayed, and pg_basebackup never does. A
// session that has just begun receives no WAL yet.
const serverSQL = `SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
	(SELECT system_identifier::text FROM pg_control_system()),
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
	r.hidden, r.unsafe, r.safe
FROM (SELECT count(*) FILTER (WHERE sync_state IS NULL) AS hidden,
	coalesce(string_agg(format('%s is %s', application_name, sync_state), ', ')
		FILTER (WHERE sync_state NOT IN ('sync', 'quorum')), '') AS unsafe,
	count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS safe
	FROM (SELECT *, bool_or(state = 'backup') OVER () AS backup FROM pg_stat_replication) a
	WHERE (state = 'backup' OR application_name = 'pg_basebackup' AND replay_lsn IS NULL
		AND (state = 'startup' OR backup)) IS NOT TRUE) r`

// server is the answer.
type server struct {
	recovery                                  bool
	fsync, fullPages, syncCommit, syncStandby string
	system, timeline                          string
	hidden, safe                              int    // standbys
	unsafe                                    string // the standbys, with their properties
}

func (s *server) scan(row pgx.Row) error {
	return row.Scan(&s.recovery, &s.fsync, &s.fullPages, &s.syncCommit, &s.syncStandby, &s.system, &s.timeline,
		&s.hidden, &s.unsafe, &s.safe)
}

func (s *server) lineage() string {
	n, err := strconv.ParseUint(s.timeline, 16, 32)
	if err != nil {
		return s.system + "/" + s.timeline
	}
	return fmt.Sprintf("%s/%d", s.system, n)
}

// refuse says why nothing may be written on the server.
func (s *server) refuse(lineage string) error {
	if !s.recovery && lineage != "" && s.lineage() != lineage {
		return fmt.Errorf("%w: it was opened on %s, and the server is on %s", ErrLineage, lineage, s.lineage())
	}
	for _, c := range []struct {
		bad    bool
		reason string
	}{
		{s.recovery, "the server is a standby"},
		{s.fsync != "on", "fsync is " + s.fsync},
		{s.fullPages != "on", "full_page_writes is " + s.fullPages},
		{s.syncCommit != "on" && s.syncCommit != "remote_apply", "synchronous_commit is " + s.syncCommit},
		{s.hidden > 0, "there are standbys or backups that this role may not see; as superuser: GRANT pg_monitor TO role"},
		{s.unsafe != "", "not every standby is synchronous: " + s.unsafe + "; set synchronous_standby_names"},
		{s.syncStandby != "" && s.safe == 0, "synchronous_standby_names is set, but no such standby is attached"},
	} {
		if c.bad {
			return fmt.Errorf("%w: %s", ErrUnsafe, c.reason)
		}
	}
	return nil
}

// greet prepares and checks a new session. The server's identity, which cannot change during a
// session, is checked here before any read.
func (p *postgres) greet(ctx context.Context, conn *pgx.Conn) error {
	var b pgx.Batch
	b.Queue(`SELECT set_config('synchronous_commit',
		CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`)
	b.Queue(serverSQL)
	answers := conn.SendBatch(ctx, &b)
	_, err := answers.Exec()
	var s server
	if err == nil {
		err = s.scan(answers.QueryRow())
	}
	if err = closeBatch(answers, err); err != nil {
		return err
	}
	if p.lineage == "" { // in OpenPostgres
		if err := s.refuse(""); err != nil {
			return err
		}
		p.lineage = s.lineage()
		return nil
	}
	if err := s.refuse(p.lineage); s.recovery || errors.Is(err, ErrLineage) {
		return err
	}
	return nil // each write transaction asks about the rest
}

// closeBatch ends a batch whose answers were read up to err.
func closeBatch(answers pgx.BatchResults, err error) error {
	if closeErr := answers.Close(); err == nil {
		return closeErr
	}
	return err
}

// wrap gives an error of the driver the package's name.
func wrap(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "store: ") {
		return err
	}
	return fmt.Errorf("store: %w", err)
}

// noted stores the result of an attempt to use the server, for Healthy.
func (p *postgres) noted(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && err != nil {
		return ErrClosed
	}
	if p.fatal != nil {
		return p.fatal
	}
	err = wrap(err)
	p.sick = err
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrLineage) {
		p.fatal = err
	}
	return err
}

// ended is why nothing may be written ever again.
func (p *postgres) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	return p.fatal
}

// Healthy returns the result of the last write or the last background check, whichever was later.
func (p *postgres) Healthy() error {
	if err := p.ended(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sick
}

// watch checks the server while nothing is written, and takes the lock again after its session was
// lost.
func (p *postgres) watch(lock *pgx.Conn) {
	defer func() {
		if lock != nil {
			p.hangUp(lock)
		}
	}()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		var err error
		if lock == nil {
			lock, err = p.connect(ctx)
		}
		if err == nil {
			if err = p.inspect(ctx, lock); unreachable(err) {
				p.hangUp(lock)
				lock = nil
			}
		}
		cancel()
		_ = p.noted(err) // for Healthy
	}
}

// inspect queries the server's settings and the holder of the lock. It tries to take the lock,
// which is harmless if this session already has it. If an old session of this process still has the
// lock, the incarnation protects the data.
func (p *postgres) inspect(ctx context.Context, conn *pgx.Conn) error {
	var b pgx.Batch
	b.Queue(serverSQL)
	b.Queue(`SELECT incarnation FROM holder`)
	b.Queue(`SELECT pg_try_advisory_lock($1) FROM (SELECT count(*) FROM pg_locks
		WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted) l WHERE l.count = 0`, p.lockID())
	answers := conn.SendBatch(ctx, &b)
	err := p.admit(answers)
	if err == nil {
		_, err = answers.Exec()
	}
	return closeBatch(answers, err)
}

// admit reads the answers to serverSQL and the query for the incarnation, which may have one more
// column.
func (p *postgres) admit(answers pgx.BatchResults, more ...any) error {
	var s server
	if err := s.scan(answers.QueryRow()); err != nil {
		return err
	}
	if err := s.refuse(p.lineage); err != nil {
		return err
	}
	var incarnation string
	if err := answers.QueryRow().Scan(append([]any{&incarnation}, more...)...); err != nil {
		return err
	}
	if incarnation != p.incarnation {
		return ErrFenced
	}
	return nil
}

// unreachable tells a lost or refused connection, after which another may do, from an answer.
func unreachable(err error) bool {
	if err == nil {
		return false
	}
	for _, refusal := range []error{ErrFenced, ErrLineage, ErrUnsafe, ErrClosed} {
		if errors.Is(err, refusal) {
			return false
		}
	}
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return true
	}
	// 08: connection; 53300: too many; 57P: the server stops or starts; 25P03: idle for too long;
	// 25P02 follows another.
	return strings.HasPrefix(answer.Code, "08") || strings.HasPrefix(answer.Code, "57P") ||
		answer.Code == "53300" || answer.Code == "25P03"
}

// undecided reports whether the server may have executed the statements despite the error.
func undecided(conn *pgx.Conn, err error) bool {
	return err != nil && (conn.IsClosed() || errors.Is(err, errNotReplicated))
}

// undone tells that the server rolled back for the sake of another transaction.
func undone(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (answer.Code == "40001" || answer.Code == "40P01")
}

// warned is the mark of a session that got a warning. The important error comes with a commit that
// was not replicated because the wait for the standby was cancelled.
const warned = "warned"

func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warned] = true
	}
}

func takeWarning(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	defer delete(data, warned)
	return data[warned] == true
}
