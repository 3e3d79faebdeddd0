package vault

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/lodge-mpc/lodge/services/store"
)

// Place is where a vault lies: in a directory, or in the PostgreSQL database that a file has the connection string of.
type Place struct {
	Dir, PostgresDSNFile string
}

// OpenPlace opens or makes the vault at a place.
func OpenPlace(ctx context.Context, p Place, key *Key) (*Vault, error) {
	if p.PostgresDSNFile == "" {
		return Open(p.Dir, key)
	}
	info, err := os.Stat(p.PostgresDSNFile)
	if err != nil {
		return nil, fmt.Errorf("vault: connection string: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("vault: the connection string in %s can be read by others; chmod 600 it", p.PostgresDSNFile)
	}
	dsn, err := os.ReadFile(p.PostgresDSNFile)
	if err != nil {
		return nil, fmt.Errorf("vault: connection string: %w", err)
	}
	s, err := store.OpenPostgres(ctx, strings.TrimSpace(string(dsn)))
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return OpenIn(s, key)
}
