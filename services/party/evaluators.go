package party

import (
	"runtime"
	"time"

	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
)

// pool returns the pool of this party's evaluators.
func (p *party) pool() (*evaluator.Pool, error) {
	e := p.file.Evaluators
	if len(e.Processes) == 0 {
		return nil, nil
	}
	credentials, own := p.credentials, p.file.TLS
	if own.ClientCA = ""; e.TLS != own {
		var err error
		if credentials, err = rpc.LoadCredentials(e.TLS.Files()); err != nil {
			return nil, err
		}
		p.toEvaluators = credentials
	}
	return evaluator.New(evaluator.Options{
		Check: e.Check, Processes: e.Processes, Credentials: credentials, Stall: time.Duration(e.Stall),
		Limit:   time.Duration(p.file.Limits.Compute) / 2, // less than the peers' timeout
		Workers: runtime.GOMAXPROCS(0), Metrics: p.metrics, Log: p.log,
		Excluded: func(name, reason string) {
			_, err := p.audit.Append(audit.Entry{Event: audit.EvaluatorExcluded, Objects: []string{"evaluator/" + name}, Note: reason})
			if err != nil {
				p.log.Error("the audit log has no entry about an evaluator", "evaluator", name, "error", err)
			}
		},
	}), nil
}
