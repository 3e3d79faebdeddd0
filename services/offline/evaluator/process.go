package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/health"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Run serves until ctx is done and then waits for running evaluations. It adds the interceptors in
// inner around the handlers.
func Run(ctx context.Context, f *config.EvaluatorFile, version string, log *slog.Logger, inner ...rpc.Inner) error {
	debug.SetMemoryLimit(int64(f.MaxKeysMemory + f.MaxMemory))
	if err := checkPins(f, log); err != nil {
		return err
	}
	h, err := health.Start(f.HealthListen, log)
	if err != nil {
		return err
	}
	defer h.Stop()
	credentials, err := rpc.LoadCredentials(f.TLS.Files())
	if err != nil {
		return err
	}
	directory, err := f.Directory()
	if err != nil {
		return err
	}
	m := metrics.New(version, metrics.Evaluator)
	m.Certificate(credentials.NotAfter)
	service := NewService(f, version, m)
	m.Read([]metrics.Level{metrics.EvaluatorKeys, metrics.EvaluatorRunning, metrics.EvaluatorRunningBytes}, service.load)
	server, err := rpc.NewServer(m.Server(rpc.Options{
		Credentials: credentials, Directory: directory, Rules: Rules, Log: log, Reflection: f.Reflection, Inner: inner,
	}))
	if err != nil {
		return err
	}
	evaluatorv1.RegisterEvaluatorServiceServer(server, service)
	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return err
	}
	stopping := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if f.MetricsListen != "" {
		ml, err := net.Listen("tcp", f.MetricsListen)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		go func() {
			if err := m.Serve(ctx, ml); err != nil {
				log.Error("metrics", "error", err)
			}
		}()
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	var watching sync.WaitGroup
	watching.Go(func() { credentials.Watch(ctx, log) })
	defer watching.Wait()
	defer cancel()
	server.SetReady(true)
	h.Ready(server.Ready)
	log.Info("evaluator is ready", "evaluator", f.Name, "listen", listener.Addr().String(), "party", f.Party.Name)
	select {
	case err := <-done:
		return err
	case <-stopping.Done():
	}
	h.Ready(nil)
	server.SetReady(false)
	log.Info("stopping", "within", time.Duration(f.StopAfter))
	stop, end := context.WithTimeout(context.Background(), time.Duration(f.StopAfter))
	defer end()
	server.Stop(stop)
	log.Info("stopped")
	return nil
}

// checkPins compares the pinned hashes with the sets of this build and logs which sets are legacy.
func checkPins(f *config.EvaluatorFile, log *slog.Logger) error {
	for _, pin := range f.Params {
		hash, insecure, err := lookup(pin.Name)
		if err != nil {
			return err
		}
		if hash != pin.Sum() {
			return fmt.Errorf("evaluator: parameter set %s has the hash %x in this build, but the configuration pins %s", pin.Name, hash, pin.Hash)
		}
		if insecure && !f.AllowInsecureParams {
			return fmt.Errorf("evaluator: parameter set %s is insecure; remove it, or set allow_insecure_params in a test", pin.Name)
		}
		if set, err := multikey.Lookup(pin.Name); err == nil && set.Legacy() {
			log.Warn("a pinned parameter set makes no new keys", "set", pin.Name, "reason", set.CheckNewKeys())
		}
	}
	return nil
}

// lookup finds a parameter set for products or for multi-key ciphertexts.
func lookup(name string) (hash [32]byte, insecure bool, err error) {
	set, err := params.Lookup(name)
	if err == nil {
		return set.Hash(), set.Insecure, nil
	}
	other, no := multikey.Lookup(name)
	if no != nil {
		return hash, false, errors.Join(err, no)
	}
	return other.Hash(), other.Insecure, nil
}

// load returns the memory of the keys, and the number and memory of the running evaluations.
func (s *Service) load(set metrics.SetLevel) {
	running, bytes := s.budget.load()
	set(metrics.EvaluatorKeys, float64(s.cache.bytes()))
	set(metrics.EvaluatorRunning, float64(running))
	set(metrics.EvaluatorRunningBytes, float64(bytes))
}
