package traces

import (
	"context"
	"fmt"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// retries configures the retries of calls that the collector could not accept.
const retries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "1s", "maxBackoff": "5s",
	"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`

// retried is the maximum number of bytes kept for retries.
const retried = 4 << 20

// upload implements otlptrace.Client. The library's own gRPC client must not be linked: it
// registers gzip for the whole process, and then all servers in the process decompress their input.
type upload struct {
	endpoint string
	security credentials.TransportCredentials
	conn     *grpc.ClientConn
}

// Start creates the connection without waiting for it.
func (u *upload) Start(context.Context) (err error) {
	u.conn, err = grpc.NewClient(u.endpoint, grpc.WithTransportCredentials(u.security), grpc.WithDefaultServiceConfig(retries))
	return err
}

// Stop closes the connection.
func (u *upload) Stop(context.Context) error { return u.conn.Close() }

// UploadTraces sends spans.
func (u *upload) UploadTraces(ctx context.Context, spans []*tracev1.ResourceSpans) error {
	r, err := collectorv1.NewTraceServiceClient(u.conn).Export(ctx, &collectorv1.ExportTraceServiceRequest{ResourceSpans: spans}, grpc.MaxRetryRPCBufferSize(retried))
	if n := r.GetPartialSuccess().GetRejectedSpans(); err == nil && n > 0 {
		return fmt.Errorf("%d spans were refused: %s", n, r.GetPartialSuccess().GetErrorMessage())
	}
	return err
}
