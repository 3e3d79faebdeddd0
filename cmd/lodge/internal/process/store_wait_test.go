package process

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// A command on a store in use fails, or waits for the party if --wait is set.
func TestStoreWaits(t *testing.T) {
	cmd, place, o := &cobra.Command{}, seal.Place{Dir: t.TempDir()}, &storeFlags{}
	cmd.SetContext(t.Context())
	held, err := o.open(cmd, place, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.open(cmd, place, true); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.Conflict {
		t.Errorf("in use: %v", err)
	}
	o.wait = time.Hour
	done := make(chan error)
	go func() {
		s, err := o.open(cmd, place, true)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after waiting: %v", err)
	}
}
