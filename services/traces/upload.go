package traces

import (
	"context"
	"fmt"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// retries of a call that the collector could not take now.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "1s", "maxBackoff": "5s",
	"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`

// retried is the most that is kept to be sent again, in bytes.
const retried = 4 << 20

// upload implements otlptrace.Client. The library's own client for gRPC cannot be linked: it registers gzip for the whole
// process, and then every server of it unpacks what it is sent.
type upload struct {
	endpoint string
	security credentials.TransportCredentials
	conn     *grpc.ClientConn
}

// Start makes the connection, without waiting for it.
func (u *upload) Start(context.Context) (err error) {
	u.conn, err = grpc.NewClient(u.endpoint, grpc.WithTransportCredentials(u.security), grpc.WithDefaultServiceConfig(retries))
	return err
}

// Stop closes it.
func (u *upload) Stop(context.Context) error { return u.conn.Close() }

// UploadTraces sends spans.
func (u *upload) UploadTraces(ctx context.Context, spans []*tracev1.ResourceSpans) error {
	r, err := collectorv1.NewTraceServiceClient(u.conn).Export(ctx, &collectorv1.ExportTraceServiceRequest{ResourceSpans: spans}, grpc.MaxRetryRPCBufferSize(retried))
	if n := r.GetPartialSuccess().GetRejectedSpans(); err == nil && n > 0 {
		return fmt.Errorf("%d spans were refused: %s", n, r.GetPartialSuccess().GetErrorMessage())
	}
	return err
}
