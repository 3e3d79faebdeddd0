package devnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

// withDatabase makes the directories that the containers of two parties and the database server
// have.
func withDatabase(t *testing.T) string {
	dir := mounts(t)
	for _, name := range []string{beginDir, databaseDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func inPostgres(o Options) Options {
	o.Postgres = true
	return o
}

// The server's script creates databases that each party's connection string opens, and only its
// own.
func TestDatabase(t *testing.T) {
	dir := withDatabase(t)
	if made, err := Install(dir, inPostgres(forTwo), os.Getuid()); err != nil || !made {
		t.Fatal(made, err)
	}
	script, err := os.ReadFile(filepath.Join(dir, beginDir, "lodge.sql"))
	if err != nil {
		t.Fatal(err)
	}
	server := storetest.NewPostgres(t)
	for statement := range strings.SplitSeq(string(script), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			server.Exec(t, statement)
		}
	}
	server.Exec(t, fmt.Sprintf("COPY (VALUES ('local all postgres trust'), ('local all all scram-sha-256')) TO '%s/data/pg_hba.conf'", server.Host()))
	server.Exec(t, "SELECT pg_reload_conf()")
	server.Await(t, "SELECT count(*)::text FROM pg_hba_file_rules", "2")
	connect := func(dsn string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	}
	for i, name := range []string{"p0", "p1"} {
		f, err := config.LoadParty(filepath.Join(dir, name, "party.yaml"))
		if err != nil || f.Vault.Dir != "" {
			t.Fatalf("%s: %+v, %v", name, f, err)
		}
		text, err := os.ReadFile(f.Vault.PostgresDSNFile)
		if err != nil {
			t.Fatal(err)
		}
		dsn := strings.Replace(strings.TrimSpace(string(text)), "host=postgres", "host="+server.Host(), 1)
		s, err := store.OpenPostgres(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		other := []string{"p1", "p0"}[i]
		for _, database := range []string{other, "postgres", "template1"} {
			if err := connect(strings.Replace(dsn, "dbname="+name, "dbname="+database, 1)); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s in the database %s: %v", name, database, err)
			}
		}
		if err := connect(strings.Replace(dsn, "user="+name, "user="+other, 1)); err == nil || !strings.Contains(err.Error(), "password") {
			t.Errorf("%s with the password of %s: %v", other, name, err)
		}
		_, password, _ := strings.Cut(strings.TrimSpace(string(text)), "password=")
		password, _, _ = strings.Cut(password, " ")
		for file, content := range contents(t, dir) {
			if file != name+"/postgres.dsn" && strings.Contains(content, password) {
				t.Errorf("%s has the password of %s", file, name)
			}
		}
	}
	for file := range contents(t, filepath.Join(dir, "clients")) {
		if strings.Contains(file, "postgres") {
			t.Errorf("clients get %s", file)
		}
	}
}

// A cluster's stores stay in their place, and a cluster whose database is missing is not installed
// again.
func TestInstallStores(t *testing.T) {
	here, there := withDatabase(t), withDatabase(t)
	for dir, o := range map[string]Options{here: forTwo, there: inPostgres(forTwo)} {
		for range 2 {
			if _, err := Install(dir, o, os.Getuid()); err != nil {
				t.Fatal(err)
			}
		}
		before := contents(t, dir)
		o.Postgres = !o.Postgres
		if _, err := Install(dir, o, os.Getuid()); !errors.Is(err, ErrOtherStore) {
			t.Errorf("PostgreSQL %t after the other: %v", o.Postgres, err)
		}
		after := contents(t, dir)
		for name, text := range before {
			if after[name] != text {
				t.Errorf("%s has changed", name)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(there, "p1", "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(there, inPostgres(forTwo), os.Getuid()); !errors.Is(err, ErrInstalled) || !strings.Contains(err.Error(), "the database is missing") {
		t.Errorf("a database was lost: %v", err)
	}
	if err := os.WriteFile(filepath.Join(there, databaseDir, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := Install(there, inPostgres(forTwo), os.Getuid()); err != nil || made {
		t.Errorf("again: %t, %v", made, err)
	}
	fresh := withDatabase(t)
	if err := os.WriteFile(filepath.Join(fresh, databaseDir, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{forTwo, inPostgres(forTwo)} {
		if _, err := Install(fresh, o, os.Getuid()); !errors.Is(err, ErrInstalled) {
			t.Errorf("a database of another cluster: %v", err)
		}
	}
	if _, err := Install(mounts(t), inPostgres(forTwo), os.Getuid()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without directories for the database: %v", err)
	}
}
