package process_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/party"
)

// The store of a party that has served is sound, is backed up and restored, and the party continues
// with it.
func TestStoreOfAPartyThatServed(t *testing.T) {
	l, root := lodgetest.Start(t), t.TempDir()
	id := strings.TrimSpace(l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "40")...)...))
	l.OK("fetch", id, "--party", "p0", "--out", filepath.Join(root, "shares"))
	for _, stop := range l.Stop {
		stop()
	}
	file, backup := l.Net.Parties[0], filepath.Join(root, "backup")
	store := func(want string, args ...string) {
		t.Helper()
		out, err := lodgetest.Run(t, append(append([]string{"store"}, args...), "--config", file)...)
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	store(": sound", "check", "--deep")
	store("consumed", "stats")
	store("read back", "backup", "--out", backup)
	f, err := config.LoadParty(file)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(args ...string) {
		t.Helper()
		if err := os.RemoveAll(f.Vault.Dir); err != nil {
			t.Fatal(err)
		}
		store("All epochs are retired", append([]string{"restore", "--in", backup}, args...)...)
		store("quarantine ended", "quarantine", "--leave")
		store(": sound", "check", "--deep")
	}
	restore()
	if err := os.RemoveAll(f.AuditDir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := party.Run(ctx, f, "test", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--new-audit-log") {
		t.Errorf("with a log that is not there: %v", err)
	}
	restore("--new-audit-log")
	for i := range l.Net.Parties {
		l.Run(func(ctx context.Context) error {
			f, err := config.LoadParty(l.Net.Parties[i])
			return errors.Join(err, party.Run(ctx, f, "test", slog.New(slog.DiscardHandler)))
		})
	}
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(l.Net.Coordinator)
		return errors.Join(err, coordinator.Run(ctx, f, "test", slog.New(slog.DiscardHandler)))
	})
	l.Eventually(func() bool {
		_, err := l.Try("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--wait")
		return err == nil
	})
	l.OK("jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "2", "--count", "10", "--wait")
	if _, err := l.Try("fetch", id, "--party", "p0", "--out", filepath.Join(root, "again")); err == nil {
		t.Error("what was drawn before comes again")
	}
}
