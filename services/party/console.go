package party

import (
	"github.com/lodge-mpc/lodge/services/console"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// openConsole prepares the console.
func (p *party) openConsole(tokens rpc.Tokens, version string) (err error) {
	p.console, err = console.Register(p.server, console.Options{
		Config: p.file.Console, Name: p.file.Name, Role: "party", Version: version, Credentials: p.credentials, Tokens: tokens,
		Metrics: p.metrics, Log: p.log,
	})
	return err
}
