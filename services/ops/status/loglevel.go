package status

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxSpan is the maximum duration of a temporary level.
const maxSpan = 24 * time.Hour

// SetLogLevel implements the service.
func (s *Service) SetLogLevel(ctx context.Context, q *statusv1.SetLogLevelRequest) (*statusv1.SetLogLevelResponse, error) {
	to, err := logs.ParseLevel(q.GetLevel())
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "the level %v", err)
	}
	span := q.GetSpan().AsDuration()
	if span < 0 || span > maxSpan {
		return nil, rpc.Errorf(rpc.Invalid, "request at most "+maxSpan.String()+", or 0 for no time limit", "invalid duration %s for a log level", span)
	}
	p, _ := rpc.Caller(ctx)
	level := logs.LevelOf(s.Log)
	said := s.Log.Enabled(ctx, slog.LevelWarn)
	if said {
		s.Log.Warn("log level changes", "level", q.GetLevel(), "for", span, "by", p.Name)
	}
	if level.Set(to, span); !said { // log the change if the new level allows it
		s.Log.Warn("log level changes", "level", q.GetLevel(), "for", span, "by", p.Name)
	}
	return &statusv1.SetLogLevelResponse{LogLevel: s.logLevel()}, nil
}

func (s *Service) logLevel() *statusv1.LogLevel {
	level, until := logs.LevelOf(s.Log).Now()
	out := &statusv1.LogLevel{Level: logs.LevelName(level)}
	if !until.IsZero() {
		out.Until = timestamppb.New(until)
	}
	return out
}
