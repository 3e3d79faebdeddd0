package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

func openPostgres(t *testing.T, dsn string) store.Store {
	t.Helper()
	s, err := store.OpenPostgres(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func refuseOpen(t *testing.T, dsn string, want error, text string) {
	t.Helper()
	s, err := store.OpenPostgres(context.Background(), dsn)
	if err == nil {
		s.Close()
	}
	refused(t, err, want, text)
}

func refused(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want %v with %q", err, want, text)
	}
}

// becomes waits until the background has noticed.
func becomes(t *testing.T, s store.Store, want error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = s.Healthy(); errors.Is(err, want) {
			return
		}
	}
	t.Fatalf("healthy: %v, want %v", err, want)
}

func put(s store.Store, key, value string) error {
	return s.Update(func(tx store.Tx) error { return tx.Put(key, []byte(value)) })
}

func get(t *testing.T, s store.Store, key string) (value string) {
	t.Helper()
	err := s.View(func(tx store.Tx) error {
		v, err := tx.Get(key)
		value = string(v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// terminate ends sessions of the role.
func terminate(t *testing.T, server *storetest.Server, which string) {
	t.Helper()
	server.Query(t, `SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE usename = 'lodge' `+which)
}

// A process that lost its lock is fenced off by the next one: whatever it had begun, it writes
// nothing any more.
func TestPostgresFenced(t *testing.T) {
	dsn, server := storetest.Postgres(t)
	former := openPostgres(t, dsn)
	must(t, put(former, "a", "former"))
	w, err := former.Create("kept")
	must(t, err)
	must(t, w.Commit())
	blob, err := former.Open("kept")
	must(t, err)
	late, err := former.Create("late")
	must(t, err)
	_, err = late.Write(make([]byte, 3<<20))
	must(t, err)

	refuseOpen(t, dsn, store.ErrInUse, "schema")
	// An update that has begun is whole before the next process holds the store.
	running, proceed := make(chan bool), make(chan bool)
	result := make(chan error)
	go func() {
		result <- former.Update(func(tx store.Tx) error {
			if err := tx.Put("b", []byte("begun before")); err != nil {
				return err
			}
			running <- true
			<-proceed
			return nil
		})
	}()
	<-running
	terminate(t, server, `AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`)
	time.AfterFunc(200*time.Millisecond, func() { close(proceed) })
	next := openPostgres(t, dsn)
	must(t, <-result)
	if v := get(t, next, "b"); v != "begun before" {
		t.Errorf("an acknowledged update is %q", v)
	}
	must(t, put(next, "a", "next"))
	refused(t, put(former, "a", "too late"), store.ErrFenced, "")
	_, err = late.Write(make([]byte, 3<<20))
	refused(t, err, store.ErrFenced, "")
	refused(t, late.Commit(), store.ErrFenced, "")
	_, err = former.Create("another")
	refused(t, err, store.ErrFenced, "")
	_, err = blob.WriteAt([]byte("x"), 0)
	refused(t, err, store.ErrFenced, "")
	refused(t, former.Erase("kept"), store.ErrFenced, "")
	becomes(t, former, store.ErrFenced)
	if v := get(t, next, "a"); v != "next" {
		t.Errorf("the fenced process wrote %q", v)
	}
	if names, err := next.Blobs(); err != nil || fmt.Sprint(names) != "[kept]" {
		t.Errorf("blobs %q: %v", names, err)
	}
	becomes(t, next, nil)
}

// Sessions that end at any moment cost no update, and none is done twice.
func TestPostgresLostSessions(t *testing.T) {
	t.Parallel()
	server := storetest.NewPostgres(t)
	s := openPostgres(t, server.DSN())
	done := make(chan bool)
	var wg sync.WaitGroup
	counts := make([]int, 4)
	for w := range counts {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				err := s.Update(func(tx store.Tx) error {
					key := fmt.Sprint("count/", w)
					v, err := tx.Get(key)
					if err != nil {
						return err
					}
					return tx.Put(key, append(v[:len(v):len(v)], '+'))
				})
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
				counts[w]++
			}
		})
	}
	wg.Go(func() { // a blob, too, is whole or not there
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			w, err := s.Create(fmt.Sprint("blob-", i))
			if err == nil {
				_, err = w.Write(make([]byte, 2<<20))
			}
			if err == nil {
				err = w.Commit()
			}
			names, listErr := s.Blobs()
			// When the server crashed within, the blob may fail.
			there := slices.Contains(names, fmt.Sprint("blob-", i))
			if listErr != nil || there != (err == nil) {
				t.Errorf("blob %d: there %v, error %v, list error %v", i, there, err, listErr)
				return
			}
		}
	})
	for range 12 {
		time.Sleep(60 * time.Millisecond)
		terminate(t, server, "")
	}
	server.Crash()
	server.Start(t)
	time.Sleep(300 * time.Millisecond)
	close(done)
	wg.Wait()
	for w, n := range counts {
		if got := len(get(t, s, fmt.Sprint("count/", w))); got != n || n == 0 {
			t.Errorf("worker %d: %d updates were acknowledged, %d took place", w, n, got)
		}
	}
	must(t, put(s, "after", "all"))
	becomes(t, s, nil)
}

// Settings under which PostgreSQL may lose acknowledged writes.
func TestPostgresUnsafeSettings(t *testing.T) {
	t.Parallel()
	server := storetest.NewPostgres(t)
	dsn := server.DSN()
	s := openPostgres(t, dsn)
	must(t, put(s, "a", "1"))
	for _, setting := range []string{"fsync", "full_page_writes"} {
		set(t, server, setting, "off")
		refuseOpen(t, server.DSN(), store.ErrUnsafe, setting+" is off")
		refused(t, put(s, "a", "2"), store.ErrUnsafe, setting+" is off")
		_, err := s.Create("b")
		refused(t, err, store.ErrUnsafe, setting+" is off")
		becomes(t, s, store.ErrUnsafe)
		if v := get(t, s, "a"); v != "1" {
			t.Errorf("a refused update wrote %q", v)
		}
		set(t, server, setting, "on")
		must(t, put(s, "a", "1"))
		becomes(t, s, nil)
	}
	// The background notices by itself.
	set(t, server, "fsync", "off")
	becomes(t, s, store.ErrUnsafe)
	set(t, server, "fsync", "on")
	becomes(t, s, nil)
	// This one is of the session, and the store sets it.
	server.Exec(t, "ALTER ROLE lodge SET synchronous_commit = off")
	must(t, put(openPostgres(t, server.DSN()), "a", "1"))
}

func TestPostgresRefusesDSN(t *testing.T) {
	dsn, server := storetest.Postgres(t)
	base := strings.Split(dsn, "search_path")[0]
	for _, path := range []string{"a,b", "Upper", `"quoted"`, "pg-x"} {
		refuseOpen(t, base+"search_path="+path, store.ErrInvalid, "search_path")
	}
	s := openPostgres(t, base) // the schema named after it
	must(t, put(s, "a", "1"))
	if n := server.Query(t, "SELECT count(*)::text FROM lodge.records"); n != "1" {
		t.Errorf("lodge.records has %s records", n)
	}
	must(t, s.Close())
	server.Query(t, "WITH u AS (UPDATE lodge.holder SET version = 1 RETURNING 1) SELECT count(*)::text FROM u")
	refuseOpen(t, base, store.ErrInvalid, "version 1")
	server.Exec(t, "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'")
	refuseOpen(t, "host="+server.Host()+" user=postgres dbname=latin", store.ErrInvalid, "LATIN1")
}

// A standby must be synchronous, and be seen. When it is promoted the store has another lineage.
func TestPostgresStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewPostgres(t)
	dsn := primary.DSN()
	alone := openPostgres(t, dsn)
	lineage := alone.Lineage()
	must(t, put(alone, "a", "1"))
	standby := primary.Standby(t, "second")

	refused(t, put(alone, "a", "2"), store.ErrUnsafe, "GRANT pg_monitor")
	refuseOpen(t, primary.DSN(), store.ErrUnsafe, "GRANT pg_monitor")
	primary.Exec(t, "GRANT pg_monitor TO lodge")
	refused(t, put(alone, "a", "2"), store.ErrUnsafe, "second is async")
	becomes(t, alone, store.ErrUnsafe)
	refuseOpen(t, primary.DSN(), store.ErrUnsafe, "second is async")
	set(t, primary, "synchronous_standby_names", "second")
	primary.Await(t, "SELECT sync_state FROM pg_stat_replication", "sync")
	must(t, put(alone, "a", "2"))
	becomes(t, alone, nil)
	must(t, alone.Close())

	// With both servers in the connection string, as for a program that survives a failover.
	both := strings.Replace(dsn, "host="+primary.Host(), "host="+primary.Host()+","+standby.Host(), 1)
	s := openPostgres(t, both)
	if s.Lineage() != lineage {
		t.Errorf("lineage %q became %q", lineage, s.Lineage())
	}
	cancelledWait(t, primary, standby, s)

	// After a standby leaves, no standby is left to wait for.
	standby.Stop()
	primary.Await(t, "SELECT count(*)::text FROM pg_stat_replication", "0")
	refused(t, put(s, "a", "3"), store.ErrUnsafe, "no such standby is attached")
	standby.Start(t)
	primary.Await(t, "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication", "sync")
	must(t, put(s, "a", "4"))
	refuseOpen(t, strings.Replace(dsn, primary.Host(), standby.Host(), 1), store.ErrUnsafe, "the server is a standby")

	primary.Crash()
	promote(t, standby)
	becomes(t, s, store.ErrLineage)
	refused(t, put(s, "a", "5"), store.ErrLineage, "")
	refused(t, s.Erase("b"), store.ErrLineage, "")
	must(t, s.Close())
	set(t, standby, "synchronous_standby_names", "")
	s = openPostgres(t, both)
	if v := get(t, s, "a"); v != "4" {
		t.Errorf("the promoted standby has a=%s, and 4 was acknowledged", v)
	}
	system, timeline, _ := strings.Cut(s.Lineage(), "/")
	if was, first, _ := strings.Cut(lineage, "/"); system != was || first != "1" || timeline != "2" {
		t.Errorf("lineage %q became %q", lineage, s.Lineage())
	}
	must(t, put(s, "a", "6"))
}

// cancelledWait: the server reports a commit as done when its wait for the standby is cancelled;
// the store waits on.
func cancelledWait(t *testing.T, primary, standby *storetest.Server, s store.Store) {
	t.Helper()
	must(t, put(s, "waited", "before"))
	thaw := freeze(t, standby)
	t.Cleanup(thaw)
	result := make(chan error, 1)
	go func() { result <- put(s, "waited", "for") }()
	const waiting = `FROM pg_stat_activity WHERE usename = 'lodge' AND wait_event = 'SyncRep'`
	primary.Await(t, `SELECT count(*)::text `+waiting, "1")
	primary.Query(t, `SELECT count(pg_cancel_backend(pid))::text `+waiting)
	primary.Await(t, `SELECT count(*)::text `+waiting, "1") // the next one waits in its place
	select {
	case err := <-result:
		t.Fatalf("the update returned before the standby had it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	thaw()
	must(t, <-result)
	if v := get(t, s, "waited"); v != "for" {
		t.Errorf("the update is %q", v)
	}
}

// A backup does not count as a standby, however it gets its WAL; and a standby does not count as a
// backup, whatever its name.
func TestPostgresBackup(t *testing.T) {
	t.Parallel()
	server := storetest.NewPostgres(t)
	s := openPostgres(t, server.DSN())
	const replication = `SELECT coalesce(string_agg(state, ' ' ORDER BY state), '') FROM pg_stat_replication`
	end := server.Backup(t)
	t.Cleanup(end)
	server.Await(t, replication, "backup streaming")
	refused(t, put(s, "a", "1"), store.ErrUnsafe, "GRANT pg_monitor")
	server.Exec(t, "GRANT pg_monitor TO lodge")
	must(t, put(s, "a", "1"))
	end()
	server.Await(t, replication, "")
	for _, args := range [][]string{{"--no-slot"}, {"-C", "-S", "kept"}, {"-X", "fetch"}} {
		end := server.Backup(t, args...)
		t.Cleanup(end)
		if args[0] == "-X" {
			server.Await(t, replication, "backup")
		} else {
			server.Await(t, replication, "backup streaming")
		}
		if err := put(s, "a", "1"); err != nil {
			t.Errorf("a backup with %s: %v", args, err)
		}
		end()
		server.Await(t, replication, "")
	}

	// No write is rejected while whole backups come and go.
	done, result := make(chan bool), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-done:
				result <- nil
				return
			default:
				err = put(s, "a", "2")
			}
		}
		result <- err
	}()
	standby := server.BaseBackup(t, "pg_basebackup")
	close(done)
	must(t, <-result)

	standby.Start(t)
	const follows = `SELECT count(*)::text FROM pg_stat_replication WHERE replay_lsn IS NOT NULL`
	server.Await(t, follows, "1")
	refused(t, put(s, "a", "3"), store.ErrUnsafe, "pg_basebackup is async")
	end = server.Backup(t)
	t.Cleanup(end)
	server.Await(t, replication, "backup streaming streaming")
	refused(t, put(s, "a", "3"), store.ErrUnsafe, "pg_basebackup is async")
	// That a backup acknowledges WAL does not make it a standby.
	standby.Stop()
	set(t, server, "synchronous_standby_names", "*")
	server.Await(t, replication, "backup streaming")
	refused(t, put(s, "a", "3"), store.ErrUnsafe, "no such standby is attached")
}
