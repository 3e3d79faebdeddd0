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
	cmd := &cobra.Command{Use: "console", Short: "Look at a process in a browser"}
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
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Print a link that signs one browser in to the console",
		Long: "Print a link to the console of the coordinator, or of the party that --party names. The link signs in the first browser\n" +
			"that opens it within a minute, with the permissions of the client that requests it; send it to nobody. The process\n" +
			"needs `console.listen` in its configuration.\n\n" + cli.Connecting,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Party == "" {
				c, err := o.Dial()
				if err != nil {
					return err
				}
				defer c.Conn.Close()
				return open(o, cmd, c.Conn, c.Address(), c.Explain)
			}
			p, err := o.DialParty()
			if err != nil {
				return err
			}
			defer p.Conn.Close()
			return open(o, cmd, p.Conn, p.Address(), p.Explain)
		},
	}
	o.Flags(cmd)
	o.PartyFlag(cmd, "party whose console to open, by name or index (default: the coordinator)")
	return cmd
}

// open prints a link to the console of the process at address.
func open(o *cli.Operator, cmd *cobra.Command, conn *grpc.ClientConn, address string, explain func(error) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), cli.CallTime)
	defer cancel()
	r, err := consolev1.NewConsoleServiceClient(conn).CreateLink(ctx, &consolev1.CreateLinkRequest{})
	if err != nil {
		return explain(err)
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
	if o.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), LinkRecord{URL: link, Expires: r.GetExpires().AsTime().UTC().Format(time.RFC3339)})
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), link)
	return err
}
