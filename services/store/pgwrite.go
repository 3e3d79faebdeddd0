package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// pgReader reads records in a transaction on conn.
type pgReader struct {
	p    *postgres
	conn *pgx.Conn
	err  error // the first, after which the transaction is of no use
}

func (r *pgReader) fail(err error) error {
	if r.err == nil && err != nil {
		r.err = err
	}
	return wrap(err)
}

func (r *pgReader) get(key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.p.ctx, answerTime)
	defer cancel()
	var value []byte
	err := r.conn.QueryRow(ctx, `SELECT value FROM records WHERE key = $1`, key).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, r.fail(err)
	}
	return notNil(value), nil
}

// keysAtOnce bounds the keys of one query.
const keysAtOnce = 5_000

func (r *pgReader) getAll(keys []string, values [][]byte) error {
	for len(keys) > 0 {
		n := min(len(keys), keysAtOnce)
		if err := r.some(keys[:n], values); err != nil {
			return err
		}
		keys, values = keys[n:], values[n:]
	}
	return nil
}

func (r *pgReader) some(keys []string, values [][]byte) error {
	ctx, cancel := context.WithTimeout(r.p.ctx, answerTime)
	defer cancel()
	rows, err := r.conn.Query(ctx, `SELECT k.place, r.value FROM unnest($1::text[]) WITH ORDINALITY AS k (key, place)
		JOIN records r ON r.key = k.key`, keys)
	if err != nil {
		return r.fail(err)
	}
	var place int64
	var value []byte
	_, err = pgx.ForEachRow(rows, []any{&place, &value}, func() error {
		values[place-1] = notNil(value)
		value = nil
		return nil
	})
	return r.fail(err)
}

func notNil(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Pages of a scan, in records. The first is small: many scans want little.
const firstPage, lastPage = 16, 512

type pgRecord struct {
	key   string
	value []byte
}

func (r *pgReader) scan(prefix, after string, f func(string, []byte) (bool, error)) error {
	from, above := prefix, ">="
	if after >= prefix {
		from, above = after, ">"
	}
	end, ends := prefixEnd(prefix)
	if ends && from >= end {
		return nil
	}
	for limit := firstPage; ; limit = min(4*limit, lastPage) {
		page, err := r.page(from, above, end, limit)
		if err != nil {
			return err
		}
		for _, record := range page {
			if more, err := f(record.key, record.value); err != nil || !more {
				return err
			}
			from, above = record.key, ">"
		}
		if len(page) < limit {
			return nil
		}
	}
}

// page reads before f is called, which may use the session.
func (r *pgReader) page(from, above, end string, limit int) ([]pgRecord, error) {
	ctx, cancel := context.WithTimeout(r.p.ctx, answerTime)
	defer cancel()
	sql, args := `SELECT key, value FROM records WHERE key `+above+` $1`, []any{from, limit}
	if end != "" {
		sql, args = sql+` AND key < $3`, append(args, end)
	}
	rows, err := r.conn.Query(ctx, sql+` ORDER BY key LIMIT $2`, args...)
	if err != nil {
		return nil, r.fail(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (pgRecord, error) {
		var record pgRecord
		err := row.Scan(&record.key, &record.value)
		record.value = notNil(record.value)
		return record, err
	})
	return page, r.fail(err)
}

// prefixEnd returns the smallest text that is greater than all texts with the prefix. UTF-8 sorts
// by code point, so the result is the prefix with its last code point increased by one. prefixEnd
// first drops trailing code points that have no successor, and returns false if nothing is left.
func prefixEnd(prefix string) (end string, ok bool) {
	for prefix != "" {
		last, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		switch {
		case last == 0xd7ff: // surrogates follow, which UTF-8 has not
			return prefix + "\ue000", true
		case last < utf8.MaxRune:
			return prefix + string(last+1), true
		}
	}
	return "", false
}

// pgWriting is a transaction of the group.
type pgWriting struct {
	pgReader
}

const cacheBytes = 32 << 20

// cache holds records as the last transaction of the leader's session left them. Nobody else writes
// records while this process is the holder, which each transaction makes sure of before it reads. A
// group of many functions would else cost many round trips to the server while it holds up others.
type cache struct {
	records map[string][]byte // nil: absent
	size    int
}

func (c *cache) set(key string, value []byte) {
	if c.size > cacheBytes || c.records == nil {
		c.records, c.size = map[string][]byte{}, 0
	}
	c.size += len(key) + len(value) + 64 // of the map
	c.records[key] = value
}

func (w *pgWriting) get(key string) ([]byte, error) {
	if value, ok := w.p.cache.records[key]; ok {
		return value, nil
	}
	value, err := w.pgReader.get(key)
	if err == nil {
		w.p.cache.set(key, value)
	}
	return value, err
}

func (w *pgWriting) getAll(keys []string, values [][]byte) error {
	var rest []string
	var places []int
	for i, key := range keys {
		if value, ok := w.p.cache.records[key]; ok {
			values[i] = value
		} else {
			rest, places = append(rest, key), append(places, i)
		}
	}
	under := make([][]byte, len(rest))
	if err := w.pgReader.getAll(rest, under); err != nil {
		return err
	}
	for i, at := range places {
		values[at] = under[i]
		w.p.cache.set(rest[i], under[i])
	}
	return nil
}

// turnSQL locks the group's turn: a transaction that a lost session left behind ends first. Sharing
// the lock of the holder keeps another process from taking over before the end.
const turnSQL = `SELECT h.incarnation, t.last FROM holder h, turn t FOR SHARE OF h FOR UPDATE OF t`

// begin begins a transaction of the group, on a server that is fit for it.
func (p *postgres) begin() (writing, error) {
	if err := p.ended(); err != nil && !errors.Is(err, ErrClosed) { // calls that were queued before Close are done
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := p.leading(ctx)
	if p.noted(err); err != nil {
		if ended := p.ended(); ended != nil {
			return nil, ended
		}
		return nil, wrap(err)
	}
	return &pgWriting{pgReader{p: p, conn: p.leader}}, nil
}

// leading begins a transaction on the leader's session, connecting it when it is lost, and gives
// the last turn.
func (p *postgres) leading(ctx context.Context) (last string, err error) {
	for {
		if p.leader == nil {
			p.leader, err = p.connect(ctx)
		}
		if p.leader != nil {
			if last, err = p.enter(ctx, p.leader); err == nil {
				return last, nil
			}
			p.dropLeader()
		}
		if !unreachable(err) {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *postgres) dropLeader() {
	p.hangUp(p.leader)
	p.leader = nil
	p.cache = cache{}
}

// enter begins a transaction, checks the server, and takes the locks of a group.
func (p *postgres) enter(ctx context.Context, conn *pgx.Conn) (last string, err error) {
	var b pgx.Batch
	b.Queue(`BEGIN`)
	b.Queue(serverSQL)
	b.Queue(turnSQL)
	answers := conn.SendBatch(ctx, &b)
	if _, err = answers.Exec(); err == nil {
		err = p.admit(answers, &last)
	}
	return last, closeBatch(answers, err)
}

// broken makes of a lost session another attempt.
func (w *pgWriting) broken() error {
	if w.err == nil {
		return nil
	}
	if unreachable(w.err) || undone(w.err) {
		return errAgain
	}
	return wrap(w.err)
}

func (w *pgWriting) rollback() {
	ctx, cancel := context.WithTimeout(w.p.ctx, time.Second)
	defer cancel()
	if _, err := w.conn.Exec(ctx, `ROLLBACK`); err != nil {
		w.p.dropLeader()
	}
}

func (w *pgWriting) commit(writes *layer) error {
	turn := rand.Text()
	err := w.send(writes, turn)
	if err == nil {
		for key, value := range writes.own {
			w.p.cache.set(key, value)
		}
		return nil
	}
	w.p.dropLeader()
	switch {
	case undone(err):
		return errAgain
	case !unreachable(err):
		return w.p.noted(err)
	}
	err = w.settle(turn)
	if err != nil && !errors.Is(err, errAgain) {
		_ = w.p.noted(err) // for Healthy; the answer is the following
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

var errNotReplicated = errors.New("store: the wait for the standby was cancelled")

// send writes and commits in one exchange.
func (w *pgWriting) send(writes *layer, turn string) error {
	var b pgx.Batch
	var put, deleted []string
	var values [][]byte
	for _, key := range writes.ordered() {
		if value := writes.own[key]; value == nil {
			deleted = append(deleted, key)
		} else {
			put, values = append(put, key), append(values, value)
		}
	}
	if len(put) > 0 {
		b.Queue(`INSERT INTO records (key, value) SELECT * FROM unnest($1::text[], $2::bytea[])
			ON CONFLICT (key) DO UPDATE SET value = excluded.value`, put, values)
	}
	if len(deleted) > 0 {
		b.Queue(`DELETE FROM records WHERE key = ANY($1::text[])`, deleted)
	}
	b.Queue(`UPDATE turn SET last = $1`, turn)
	b.Queue(`COMMIT`)
	ctx, cancel := context.WithTimeout(w.p.ctx, answerTime)
	defer cancel()
	return commitBatch(ctx, w.conn, &b)
}

// commitBatch sends a batch that ends with COMMIT.
func commitBatch(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	takeWarning(conn)
	answers := conn.SendBatch(ctx, b)
	var err error
	for i := 0; i < b.Len() && err == nil; i++ {
		tag, execErr := answers.Exec()
		if err = execErr; err == nil && i == b.Len()-1 && tag.String() != "COMMIT" {
			err = fmt.Errorf("store: the server answered COMMIT with %s", tag)
		}
	}
	err = closeBatch(answers, err)
	if takeWarning(conn) && err == nil {
		return errNotReplicated
	}
	return err
}

// settle finds out, after a session was lost, whether its commit took place, and makes sure that it
// lasts: a commit that was lost in waiting for a standby is there as soon as a later one is.
func (w *pgWriting) settle(turn string) error {
	p := w.p
	ctx, cancel := context.WithTimeout(p.ctx, answerTime)
	defer cancel()
	for {
		last, err := p.leading(ctx)
		if err != nil {
			return err
		}
		if last != turn {
			w.conn = p.leader
			w.rollback()
			return errAgain
		}
		var b pgx.Batch
		b.Queue(`UPDATE turn SET last = $1`, turn)
		b.Queue(`COMMIT`)
		if err = commitBatch(ctx, p.leader, &b); err == nil {
			return nil
		}
		p.dropLeader() // this one may be lost, too
		if !unreachable(err) || ctx.Err() != nil {
			return err
		}
	}
}
