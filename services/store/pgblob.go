package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	chunkBytes = 64 << 10
	sendChunks = 16 // sent in one transaction
)

// fenced runs f in a write transaction outside the group's. f may run more than once, so that doing
// it twice must come to the same. With lazy, the call does not wait until the commit is on a disk:
// a later commit that waits covers it.
func (p *postgres) fenced(lazy bool, f func(context.Context, *pgx.Conn) error) error {
	if err := p.ended(); err != nil {
		return err
	}
	uncertain := false
	err := p.trying(p.writes, func(ctx context.Context, conn *pgx.Conn) error {
		committing, err := p.attempt(ctx, conn, lazy, f)
		uncertain = uncertain || committing && undecided(conn, err)
		return err
	})
	for _, own := range []error{ErrExists, ErrNotFound, ErrInvalid, errChunksLost} {
		if errors.Is(err, own) {
			return err
		}
	}
	err = p.noted(err)
	if err != nil && uncertain {
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

// attempt is one transaction of fenced; committing says that COMMIT was sent.
func (p *postgres) attempt(
	ctx context.Context, conn *pgx.Conn, lazy bool, f func(context.Context, *pgx.Conn) error,
) (committing bool, err error) {
	var b pgx.Batch
	b.Queue(`BEGIN`)
	b.Queue(serverSQL)
	b.Queue(`SELECT incarnation FROM holder FOR SHARE`)
	if lazy {
		b.Queue(`SET LOCAL synchronous_commit = off`)
	}
	answers := conn.SendBatch(ctx, &b)
	if _, err = answers.Exec(); err == nil {
		err = p.admit(answers)
	}
	if err = closeBatch(answers, err); err == nil {
		err = f(ctx, conn)
	}
	if err != nil {
		return false, err
	}
	var end pgx.Batch
	end.Queue(`COMMIT`)
	return true, commitBatch(ctx, conn, &end)
}

type pgWriter struct {
	p     *postgres
	name  string
	id    int64 // no other blob's, also on a server that crashed and has forgotten this one
	buf   []byte
	sent  int64 // chunks
	size  int64
	ended bool
	err   error
}

func (p *postgres) Create(name string) (Writer, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	w := &pgWriter{p: p, name: name, buf: make([]byte, 0, sendChunks*chunkBytes)}
	err := p.fenced(true, func(ctx context.Context, conn *pgx.Conn) error {
		w.id = newBlobID() // the next OpenPostgres erases leftovers of an attempt that looked lost
		_, err := conn.Exec(ctx, `INSERT INTO blobs (id, size) VALUES ($1, 0)`, w.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// newBlobID draws 63 bits. 2^20 blobs have two of one id with a probability below 2^-23; while one
// exists, the other is rejected.
func newBlobID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

func (w *pgWriter) Write(b []byte) (int, error) {
	if w.err == nil && w.ended {
		w.err = errWriterEnded
	}
	n := 0
	for len(b) > 0 && w.err == nil {
		k := min(len(b), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, b[:k]...)
		if b, n = b[k:], n+k; len(w.buf) == cap(w.buf) {
			w.send()
		}
	}
	return n, w.err
}

func (w *pgWriter) send() {
	if w.err != nil || len(w.buf) == 0 {
		return
	}
	chunks := slices.Collect(slices.Chunk(w.buf, chunkBytes))
	w.err = w.p.fenced(true, func(ctx context.Context, conn *pgx.Conn) error {
		// In conflict are those of an attempt that looked lost.
		_, err := conn.Exec(ctx, `INSERT INTO chunks (blob, index, data)
			SELECT $1, $2::bigint + i - 1, d FROM unnest($3::bytea[]) WITH ORDINALITY AS u (d, i)
			ON CONFLICT DO NOTHING`, w.id, w.sent, chunks)
		if violates(err, noReference) {
			return errChunksLost
		}
		return err
	})
	w.size += int64(len(w.buf))
	w.sent += int64(len(chunks))
	w.buf = w.buf[:0]
}

var errChunksLost = errors.New("store: the server lost parts of the blob before it was committed")

func (w *pgWriter) Commit() error {
	if w.ended {
		return errWriterEnded
	}
	w.send()
	if w.err == nil {
		w.err = w.p.fenced(false, w.commit)
	}
	if w.err != nil && !errors.Is(w.err, ErrUncertain) {
		w.Abort()
	}
	w.end()
	return w.err
}

// commit names the blob. Its chunks were not waited for, and a server that crashed since may be
// without some.
func (w *pgWriter) commit(ctx context.Context, conn *pgx.Conn) error {
	var name *string
	err := conn.QueryRow(ctx, `SELECT name FROM blobs WHERE id = $1 FOR UPDATE`, w.id).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return errChunksLost
	}
	if err != nil || name != nil && *name == w.name { // by an attempt that looked lost
		return err
	}
	tag, err := conn.Exec(ctx, `UPDATE blobs SET name = $2, size = $3 WHERE id = $1 AND name IS NULL
		AND $4 = (SELECT count(*) FROM chunks WHERE blob = $1)`, w.id, w.name, w.size, w.sent)
	if violates(err, notUnique) {
		return ErrExists
	}
	if err == nil && tag.RowsAffected() != 1 {
		return errChunksLost
	}
	return err
}

// Constraints that a statement may violate, by the code of the answer.
const noReference, notUnique = "23503", "23505"

func violates(err error, constraint string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == constraint
}

func (w *pgWriter) end() {
	w.ended = true
	clear(w.buf[:cap(w.buf)])
	w.buf = nil
}

// The next OpenPostgres erases chunks that Abort cannot erase.
func (w *pgWriter) Abort() {
	if w.ended {
		return
	}
	w.end()
	_ = w.p.fenced(true, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DELETE FROM blobs WHERE id = $1 AND name IS NULL`, w.id)
		return err
	})
}

type pgBlob struct {
	p      *postgres
	id     int64
	closed atomic.Bool
}

func (p *postgres) Open(name string) (Blob, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	b := &pgBlob{p: p}
	if err := p.row(`SELECT id FROM blobs WHERE name = $1`, name, &b.id); err != nil {
		return nil, err
	}
	return b, nil
}

// row reads one value, or gives ErrNotFound.
func (p *postgres) row(sql string, arg, value any) error {
	return p.reading(func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, sql, arg).Scan(value)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		return err
	})
}

func (b *pgBlob) Size() (size int64, err error) {
	if b.closed.Load() {
		return 0, ErrClosed
	}
	err = b.p.row(`SELECT size FROM blobs WHERE id = $1 AND name IS NOT NULL`, b.id, &size)
	return size, err
}

// readSQL cuts the requested bytes out of the first and the last chunk on the server.
const readSQL = `SELECT b.size, c.index, substring(c.data
		FROM CASE WHEN c.index = $2 THEN $4::int ELSE 1 END FOR CASE WHEN c.index = $3 THEN $5::int ELSE $6::int END)
	FROM blobs b LEFT JOIN chunks c ON c.blob = b.id AND c.index BETWEEN $2 AND $3
	WHERE b.id = $1 AND b.name IS NOT NULL ORDER BY c.index`

// ReadAt reads from one snapshot.
func (b *pgBlob) ReadAt(p []byte, off int64) (int, error) {
	if b.closed.Load() {
		return 0, ErrClosed
	}
	if off < 0 {
		return 0, fmt.Errorf("%w: read at %d", ErrInvalid, off)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := 0
	err := b.p.reading(func(ctx context.Context, conn *pgx.Conn) (err error) {
		n, err = b.read(ctx, conn, p, off)
		return err
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// read fills p as far as the blob goes.
func (b *pgBlob) read(ctx context.Context, conn *pgx.Conn, p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	first, last := off/chunkBytes, (end-1)/chunkBytes
	from, count := off%chunkBytes+1, (end-1)%chunkBytes+1
	if first == last {
		count = int64(len(p))
	}
	rows, err := conn.Query(ctx, readSQL, b.id, first, last, from, count, chunkBytes)
	if err != nil {
		return 0, err
	}
	n, size := 0, int64(-1)
	var index *int64
	var data pgtype.DriverBytes // valid until the next row
	_, err = pgx.ForEachRow(rows, []any{&size, &index, &data}, func() error {
		if index == nil { // beyond the end
			return nil
		}
		if *index != (off+int64(n))/chunkBytes || n+len(data) > len(p) {
			return fmt.Errorf("store: chunk %d of a blob has not the length that it should have", *index)
		}
		n += copy(p[n:], data)
		return nil
	})
	switch wanted := min(int64(len(p)), size-off); {
	case err != nil:
		return n, err
	case size < 0:
		return 0, ErrNotFound
	case wanted > int64(n):
		return n, fmt.Errorf("store: a blob of %d bytes ends at %d", size, off+int64(n))
	}
	return n, nil
}

// WriteAt is atomic here.
func (b *pgBlob) WriteAt(p []byte, off int64) (int, error) {
	if b.closed.Load() {
		return 0, ErrClosed
	}
	err := b.p.fenced(false, func(ctx context.Context, conn *pgx.Conn) error {
		var size int64
		err := conn.QueryRow(ctx, `SELECT size FROM blobs WHERE id = $1 AND name IS NOT NULL FOR UPDATE`, b.id).Scan(&size)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := checkWrite(off, size); err != nil {
			return err
		}
		at := off
		for rest := p; len(rest) > 0; {
			n := min(int64(len(rest)), sendChunks*chunkBytes-at%chunkBytes)
			if err := b.overlay(ctx, conn, rest[:n], at); err != nil {
				return err
			}
			rest, at = rest[n:], at+n
		}
		if at <= size {
			return nil
		}
		_, err = conn.Exec(ctx, `UPDATE blobs SET size = $2 WHERE id = $1`, b.id, at)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// overlay writes over the chunks that there are and adds the others.
func (b *pgBlob) overlay(ctx context.Context, conn *pgx.Conn, p []byte, off int64) error {
	within := off % chunkBytes
	head := min(int64(len(p)), chunkBytes-within)
	chunks := append([][]byte{p[:head]}, slices.Collect(slices.Chunk(p[head:], chunkBytes))...)
	_, err := conn.Exec(ctx, `INSERT INTO chunks (blob, index, data)
		SELECT $1, $2::bigint + i - 1, d FROM unnest($3::bytea[]) WITH ORDINALITY AS u (d, i)
		ON CONFLICT (blob, index) DO UPDATE SET data = overlay(chunks.data PLACING excluded.data
			FROM CASE WHEN excluded.index = $2 THEN $4::int ELSE 1 END)`, b.id, off/chunkBytes, chunks, within+1)
	return err
}

func (b *pgBlob) Close() error {
	b.closed.Store(true)
	return nil
}

func (p *postgres) Erase(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return p.fenced(false, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DELETE FROM blobs WHERE name = $1`, name)
		return err
	})
}

func (p *postgres) Blobs() (names []string, err error) {
	err = p.reading(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT name FROM blobs WHERE name IS NOT NULL ORDER BY name`)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return names, err
}
