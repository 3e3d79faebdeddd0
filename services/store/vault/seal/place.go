package seal

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/lodge-mpc/lodge/services/host/secretfile"
	"github.com/lodge-mpc/lodge/services/store"
)

// Place is where a vault lies: in a directory, or in the PostgreSQL database that a file has the
// connection string of.
type Place struct {
	Dir, PostgresDSNFile string
}

// OpenStore opens or makes the store at a place, whose vault may be anything.
func (p Place) OpenStore(ctx context.Context) (store.Store, error) {
	if p.PostgresDSNFile == "" {
		return store.OpenDir(p.Dir)
	}
	dsn, err := p.dsn()
	if err != nil {
		return nil, err
	}
	return store.OpenPostgres(ctx, dsn)
}

// LookAt connects to the place's database, if it has one, and changes nothing; see
// store.LookAtPostgres.
func (p Place) LookAt(ctx context.Context) error {
	if p.PostgresDSNFile == "" {
		return nil
	}
	dsn, err := p.dsn()
	if err != nil {
		return err
	}
	return store.LookAtPostgres(ctx, dsn)
}

// dsn reads the connection string, which others must not be able to.
func (p Place) dsn() (string, error) {
	info, err := os.Stat(p.PostgresDSNFile)
	if err != nil {
		return "", fmt.Errorf("connection string: %w", err)
	}
	if secretfile.Exposed(info) {
		return "", fmt.Errorf("the connection string in %s can be read by others; chmod 600 it", p.PostgresDSNFile)
	}
	dsn, err := os.ReadFile(p.PostgresDSNFile)
	if err != nil {
		return "", fmt.Errorf("connection string: %w", err)
	}
	return strings.TrimSpace(string(dsn)), nil
}

// String names the place.
func (p Place) String() string {
	if p.PostgresDSNFile == "" {
		return p.Dir
	}
	return "the database of " + p.PostgresDSNFile
}
