package store_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

// TestPostgresCrashUnderWriters: a server that crashed has forgotten the blobs that were begun, and
// their writers go on. None of them gets, harms or becomes another one.
func TestPostgresCrashUnderWriters(t *testing.T) {
	t.Parallel()
	server := storetest.NewPostgres(t, storetest.Forgetful...)
	dsn := server.DSN()
	_, schema, _ := strings.Cut(dsn, "search_path=")
	s := openPostgres(t, dsn)
	server.HoldWAL(t)
	crash := func(rows string) { // and a part of the unfinished writes is left
		t.Helper()
		server.Crash()
		server.Start(t)
		server.HoldWAL(t)
		if n := server.Query(t, "SELECT count(*)::text FROM "+schema+".blobs WHERE name IS NULL"); n != rows {
			t.Fatalf("the crash left %s unnamed blobs, and %s would test the wrong case", n, rows)
		}
	}
	content := func(name string) []byte { return bytes.Repeat([]byte(name+" "), 3<<20/len(name)) }
	begin := func(name string, n int) store.Writer {
		t.Helper()
		w, err := s.Create(name)
		must(t, err)
		_, err = w.Write(content(name)[:n])
		must(t, err)
		return w
	}

	cases := []struct {
		name          string
		before, after int // bytes that the first writes before and after the crash
		abort         bool
	}{
		{name: "empty"},
		{name: "begun", before: 1 << 20},
		{name: "later", after: 1 << 20},
		{name: "longer", after: 1<<20 + 5},
		{name: "both", before: 1 << 20, after: 2 << 20},
		{name: "aborted", after: 1 << 20, abort: true},
	}
	var first, second []store.Writer
	for _, c := range cases {
		first = append(first, begin(c.name+"-first", c.before))
	}
	crash("0")
	for _, c := range cases { // a sequence would give the second writers the values of the first
		second = append(second, begin(c.name+"-second", 0))
	}
	for i, c := range cases {
		_, writeErr := first[i].Write(content(c.name + "-first")[c.before : c.before+c.after])
		_, err := second[i].Write(content(c.name + "-second")[:c.before+c.after])
		must(t, err)
		if c.abort {
			first[i].Abort()
		}
		if err := second[i].Commit(); err != nil {
			t.Errorf("%s: the writer of a blob that is whole got %v", c.name, err)
			continue
		}
		if err := first[i].Commit(); err == nil || errors.Is(err, store.ErrUncertain) {
			t.Errorf("%s: the writer of a blob that is lost got %v, and %v before", c.name, err, writeErr)
		}
		_, err = s.Open(c.name + "-first")
		refused(t, err, store.ErrNotFound, "")
		holds(t, s, c.name+"-second", content(c.name + "-second")[:c.before+c.after])
	}

	// Data that a commit waited for stays, and with it earlier data; later data is missed.
	kept, torn := begin("kept", 1<<20), begin("torn", 1<<20)
	must(t, put(s, "a", "1"))
	_, err := torn.Write(content("torn")[1<<20 : 2<<20])
	must(t, err)
	crash("2")
	_, err = kept.Write(content("kept")[1<<20:])
	must(t, err)
	must(t, kept.Commit())
	holds(t, s, "kept", content("kept"))
	_, err = torn.Write(content("torn")[2<<20:])
	must(t, err)
	if err := torn.Commit(); err == nil || errors.Is(err, store.ErrUncertain) {
		t.Errorf("a blob without its middle was committed: %v", err)
	}
	// An Abort may be forgotten, too, until the store is opened again.
	aborted := begin("aborted", 1<<20)
	must(t, put(s, "a", "2"))
	aborted.Abort()
	crash("1")
	const stray = ".chunks c WHERE NOT EXISTS (SELECT FROM "
	orphans := "SELECT count(*)::text FROM " + schema + stray + schema + ".blobs WHERE id = c.blob AND name IS NOT NULL)"
	must(t, s.Close())
	s = openPostgres(t, dsn)
	if n := server.Query(t, orphans); n != "0" {
		t.Errorf("%s chunks are of no blob", n)
	}
}

func holds(t *testing.T, s store.Store, name string, wanted []byte) {
	t.Helper()
	b, err := s.Open(name)
	must(t, err)
	got, err := io.ReadAll(io.NewSectionReader(b, 0, int64(len(wanted))+1))
	must(t, err)
	if !bytes.Equal(got, wanted) {
		t.Errorf("%s has %d other bytes than the %d written: %.40q", name, len(got), len(wanted), got)
	}
	must(t, b.Close())
}
