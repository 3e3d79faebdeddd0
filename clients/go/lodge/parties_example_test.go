package lodge_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
)

// Requests the status of all parties concurrently, and fails if any of them does not respond.
func ExampleFromAll() {
	config, err := lodge.Load("lodge-dev/clients/client-p0.yaml")
	check(err)
	parties, err := lodge.DialParties(config)
	check(err)
	defer parties.Close()
	list, err := lodge.FromAll(context.Background(), parties, func(ctx context.Context, conn *grpc.ClientConn) (*statusv1.GetStatusResponse, error) {
		return statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
	})
	check(err)
	for i, s := range list {
		fmt.Println(parties.Name(i), s)
	}
}
