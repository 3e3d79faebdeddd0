// Package console holds the commands for the console, the pages that a process serves to browsers.
package console

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
)

// Register adds the commands of this room to root.
func Register(root *cobra.Command) {
	cmd := cli.Command("console", nil)
	cmd.AddCommand(openCommand())
	cli.AddCommands(root, cli.GroupRun, cmd)
}

// LinkRecord is the JSON form of a link.
type LinkRecord struct {
	URL     string `json:"url"`
	Expires string `json:"expires"`
}

// openCommand returns `lodge console open`.
func openCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("open", func(cmd *cobra.Command, _ []string) error {
		if o.Party == "" {
			return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error { return open(ctx, cmd, c.Conn, c.Address()) })
		}
		return o.CallParty(cmd, func(ctx context.Context, p *cli.Party) error { return open(ctx, cmd, p.Conn, p.Address()) })
	})
	o.Flags(cmd)
	o.PartyFlag(cmd, "party whose console to open, by name or index (default: the coordinator)")
	return cmd
}

// open prints a link to the console of the process at address.
func open(ctx context.Context, cmd *cobra.Command, conn *grpc.ClientConn, address string) error {
	r, err := consolev1.NewConsoleServiceClient(conn).CreateLink(ctx, &consolev1.CreateLinkRequest{})
	if err != nil {
		return err
	}
	origin := r.GetOrigin()
	if origin == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		origin = "https://" + net.JoinHostPort(host, strconv.Itoa(int(r.GetPort())))
	}
	link := origin + r.GetPath()
	if cli.JSON(cmd) {
		return cli.WriteJSON(cmd.OutOrStdout(), LinkRecord{URL: link, Expires: r.GetExpires().AsTime().UTC().Format(time.RFC3339)})
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), link)
	return err
}
