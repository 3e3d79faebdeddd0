package devnet

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"text/template"

	"github.com/lodge-mpc/lodge/services/host/config"
)

//go:embed compose.yaml.tmpl
var composeText string

var composeTemplate = template.Must(template.New("compose").Parse(composeText))

// Compose returns a cluster for Docker Compose with the given number of parties. The coordinator is
// published at port on this machine, party i at port+1+i, and the consoles in the same order after
// the last party. `lodge compose init` installs the files of the containers.
func Compose(parties, port int) ([]byte, error) {
	if err := checkSize(parties, port, true); err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, fmt.Errorf("devnet: port 0; containers need ports that are fixed in advance")
	}
	var b bytes.Buffer
	err := composeTemplate.Execute(&b, composed{parties, port})
	return b.Bytes(), err
}

// composed is the data of the template.
type composed struct{ Parties, Port int }

// Names returns the names of the parties.
func (c composed) Names() (list []string) {
	for i := range c.Parties {
		list = append(list, partyName(i))
	}
	return list
}

// Metrics returns the port at which every process serves its metrics.
func (c composed) Metrics() int { return metricsPort }

// Connections returns the connection limit of the database server: a store uses 14, and doctor and
// a restart need some.
func (c composed) Connections() int { return 20 * (c.Parties + 1) }

// Processes returns the process limit of the database server: one for each connection, and its own.
func (c composed) Processes() int { return c.Connections() + 50 }

// PortOf returns the port of party i.
func (c composed) PortOf(i int) int { return c.Port + 1 + i }

// ConsoleOf returns the port of the console of party i, or of the coordinator for -1.
func (c composed) ConsoleOf(i int) int { return c.Port + c.Parties + 2 + i }

func partyName(i int) string { return "p" + strconv.Itoa(i) }

func checkSize(parties, port int, consoles bool) error {
	if parties < 2 || parties > config.MaxParties {
		return fmt.Errorf("devnet: %d parties; a cluster has 2 to %d", parties, config.MaxParties)
	}
	last := parties
	if consoles {
		last += parties + 1
	}
	if port < 0 || port+last > math.MaxUint16 {
		return fmt.Errorf("devnet: port %d is too high: the last port is higher by %d", port, last)
	}
	return nil
}
