package cluster

import (
	"context"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/coredump"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/party"
)

// Serve runs a coordinator or a party until ctx is done. Programs other than lodge call it for the
// processes of their clusters. It logs to w.
func Serve(ctx context.Context, role, file, version string, w io.Writer) error {
	log := logs.New(w, false)
	coredump.OffOrWarn(log) // before the process holds a secret
	switch role {
	case "party":
		f, err := config.LoadParty(file)
		if err != nil {
			return err
		}
		return party.Run(ctx, f, version, log)
	case "coordinator":
		f, err := config.LoadCoordinator(file)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, version, log)
	}
	return fmt.Errorf("unknown role %q: use party or coordinator", role)
}
