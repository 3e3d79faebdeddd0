//go:build compose

package compose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPostgres tests a cluster with its stores in PostgreSQL.
func TestPostgres(t *testing.T) {
	if *lodgeFlag == "" || *treeFlag == "" {
		t.Fatal("this is started by e2e/compose/run")
	}
	t.Setenv("COMPOSE_PROFILES", "postgres")
	each := up(t)
	each("confinement", cluster.databaseConfined)
	each("apart", cluster.databasesApart)
	var stock stock
	each("stock", func(c cluster) { stock = c.stock() })
	each("in PostgreSQL", cluster.inPostgres)
	for _, service := range []string{"postgres", "p1"} {
		each(service+" killed", func(c cluster) { c.strike(service, "killed", stock.struck) })
	}
	each("down and up", func(c cluster) { c.again(stock) })
	each("another store", func(c cluster) { c.otherStore("") })
	each("lost", cluster.databaseLost)
	each("away", cluster.away)
}

// databaseConfined checks the privileges of the server's container.
func (c cluster) databaseConfined() {
	for format, want := range map[string]string{
		"{{.HostConfig.ReadonlyRootfs}}": "true", "{{json .HostConfig.CapDrop}}": `["ALL"]`, "{{json .HostConfig.CapAdd}}": "null",
		"{{json .HostConfig.SecurityOpt}}": `["no-new-privileges:true"]`, "{{.Config.User}}": "999:999", "{{len .Mounts}}": "2",
		"{{range .NetworkSettings.Ports}}{{range .}}{{.HostPort}} {{end}}{{end}}": "", "{{.State.Health.Status}}": "healthy",
		"{{.HostConfig.Memory}}": "1073741824",
	} {
		if got := c.inspect("postgres", format); got != want {
			c.t.Errorf("%s is %s, want %s", format, got, want)
		}
	}
	if out := c.lodge("doctor", "--probe-bytes", "65536"); !strings.Contains(out, " 0 failures") {
		c.t.Errorf("doctor:\n%s", out)
	}
}

// psql runs a query as the superuser, who needs no password in the server's container, or as the
// user of the connection string.
func (c cluster) psql(dsn, sql string) (string, error) {
	out, err := c.output("docker", "compose", "exec", "--no-TTY", "postgres", "psql", "--no-password", "--tuples-only", "--no-align", "--command", sql, dsn)
	return strings.TrimSpace(out), err
}

// files copies a service's directory.
func (c cluster) files(service string) string {
	c.t.Helper()
	to := filepath.Join(c.t.TempDir(), service)
	c.docker("cp", c.container(service)+":/var/lib/lodge", to)
	return to
}

// databasesApart checks that a party's role can connect only to its own database, with its own
// password.
func (c cluster) databasesApart() {
	text, err := os.ReadFile(filepath.Join(c.files("p0"), "postgres.dsn"))
	if err != nil {
		c.t.Fatal(err)
	}
	dsn := strings.TrimSpace(string(text))
	if out, err := c.psql(dsn, "SELECT current_user"); err != nil || out != "p0" {
		c.t.Errorf("p0 in its own database: %q, %v", out, err)
	}
	for _, other := range []string{"p1", "postgres", "template1"} {
		if _, err := c.psql(strings.Replace(dsn, "dbname=p0", "dbname="+other, 1), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "permission denied for database") {
			c.t.Errorf("p0 in the database %s: %v", other, err)
		}
	}
	for _, other := range []string{"p1", "postgres"} {
		if _, err := c.psql(strings.Replace(dsn, "user=p0", "user="+other, 1), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
			c.t.Errorf("%s with p0's password: %v", other, err)
		}
	}
}

// inPostgres checks that every party's shares are in its database and not in its volume.
func (c cluster) inPostgres() {
	for _, p := range parties {
		out, err := c.psql("user=postgres dbname="+p, "SELECT EXISTS (SELECT FROM lodge.records) AND EXISTS (SELECT FROM lodge.chunks)")
		if err != nil || out != "t" {
			c.t.Errorf("%s has records and data in its database: %q, %v", p, out, err)
		}
		dir := c.files(p)
		if _, err := os.Stat(filepath.Join(dir, "vault")); !os.IsNotExist(err) {
			c.t.Errorf("%s has an embedded store (%v)", p, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "audit")); err != nil {
			c.t.Error(err)
		}
	}
}

// otherStore requests another kind of store, which must be refused without changing the running
// cluster.
func (c cluster) otherStore(profiles string) {
	before := c.batches()
	out, err := c.output("env", "COMPOSE_PROFILES="+profiles, "docker", "compose", "run", "--rm", "--no-deps", "--no-TTY", "init", "compose", "init", "/cluster")
	if err == nil || !strings.Contains(err.Error(), "stores in another place") {
		c.t.Errorf("init with the profiles %q: %v: %s", profiles, err, out)
	}
	if _, err := c.output("env", "COMPOSE_PROFILES="+profiles, "docker", "compose", "up", "--detach", "--wait"); err == nil {
		c.t.Errorf("up with the profiles %q passes", profiles)
	}
	c.compose("up", "--detach", "--wait")
	if after := c.batches(); len(after) != len(before) {
		c.t.Errorf("%d batches, then %d", len(before), len(after))
	}
}

// databaseLost removes the database. The party must refuse to start instead of creating another
// one.
func (c cluster) databaseLost() {
	c.compose("down", "--timeout", "30")
	var project struct{ Name string }
	if err := json.Unmarshal([]byte(c.compose("config", "--format", "json")), &project); err != nil {
		c.t.Fatal(err)
	}
	c.docker("volume", "rm", project.Name+"_postgres")
	if _, err := c.output("docker", "compose", "up", "--detach", "--wait"); err == nil {
		c.t.Error("up without the database passes")
	}
	if out := c.compose("logs", "init"); !strings.Contains(out, "the database is missing") {
		c.t.Errorf("init says: %s", out)
	}
}
