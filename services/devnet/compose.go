package devnet

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"text/template"

	"github.com/lodge-mpc/lodge/services/config"
)

//go:embed compose.yaml.tmpl
var composeText string

var composeTemplate = template.Must(template.New("compose").Parse(composeText))

// Compose is a cluster for Docker Compose: parties so many, the coordinator published at a port of this machine and party
// i at the one that is 1+i higher. What runs in it is installed by `lodge compose init`.
func Compose(parties, port int) ([]byte, error) {
	if err := checkSize(parties, port); err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, fmt.Errorf("devnet: port 0; containers need ports that are known beforehand")
	}
	var b bytes.Buffer
	err := composeTemplate.Execute(&b, composed{parties, port})
	return b.Bytes(), err
}

// composed is what the template is about.
type composed struct{ Parties, Port int }

// Names of the parties.
func (c composed) Names() (list []string) {
	for i := range c.Parties {
		list = append(list, partyName(i))
	}
	return list
}

// Metrics is the port at which every process serves its metrics.
func (c composed) Metrics() int { return metricsPort }

// Connections is how many the database server takes: a store has 14, and doctor and a restart need some.
func (c composed) Connections() int { return 20 * (c.Parties + 1) }

// Processes bounds the database server's: one for each connection, and its own.
func (c composed) Processes() int { return c.Connections() + 50 }

// PortOf a party.
func (c composed) PortOf(i int) int { return c.Port + 1 + i }

func partyName(i int) string { return "p" + strconv.Itoa(i) }

func checkSize(parties, port int) error {
	if parties < 2 || parties > config.MaxParties {
		return fmt.Errorf("devnet: %d parties; a cluster has 2 to %d", parties, config.MaxParties)
	}
	if port < 0 || port+parties > math.MaxUint16 {
		return fmt.Errorf("devnet: port %d; the last party has the one that is %d higher", port, parties)
	}
	return nil
}
