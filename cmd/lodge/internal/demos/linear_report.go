package demos

import (
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// LinearLayer is the cost of one product.
type LinearLayer struct {
	Name     string  `json:"name"`
	Values   int     `json:"values"`
	UpBytes  uint64  `json:"encrypted_bytes"`
	Down     uint64  `json:"answer_bytes"`
	Seconds  float64 `json:"seconds"`
	Distance float64 `json:"log_distance"`
}

// LinearReport is the outcome of `lodge demo linear`.
type LinearReport struct {
	Security     string        `json:"security"`
	VectorSet    string        `json:"vector_set"`
	ProductSet   string        `json:"product_set"`
	Layers       []LinearLayer `json:"layers"`
	Correct      bool          `json:"correct"`
	TotalSeconds float64       `json:"total_seconds"`
}

func (r *LinearReport) add(name string, values int, up, down uint64, distance float64, d time.Duration) {
	r.Layers = append(r.Layers, LinearLayer{Name: name, Values: values, UpBytes: up, Down: down, Seconds: d.Seconds(), Distance: distance})
}

// Print writes the report for people.
func (r *LinearReport) Print(w io.Writer) error {
	verdict := "the scores and the product are those in the clear"
	if !r.Correct {
		verdict = "the results are NOT those in the clear"
	}
	fmt.Fprintf(w, `
An image of %d x %d pixels that one client shares, %d filters of %d x %d and weights of %d x %d that the other has:
%s.
Security: %s, which means that the party follows the protocol; sets %s, with inputs that the client proves, and %s.
No activations between the layers.

  %-24s%12s%16s%14s%10s%12s
`, imageSide, imageSide, filterCount, kernelSide, kernelSide, classes, hiddenSize, verdict, r.Security, r.VectorSet, r.ProductSet,
		"", "values", "sent encrypted", "answers", "time", "distance")
	for _, l := range r.Layers {
		fmt.Fprintf(w, "  %-24s%12d%16s%14s%8.2f s%12s\n", l.Name, l.Values, terminal.Amount(float64(l.UpBytes)), terminal.Amount(float64(l.Down)), l.Seconds, fmt.Sprintf("2^%.1f", l.Distance))
	}
	_, err := fmt.Fprintf(w, "  %-24s%52s%.1f s\n", "in all", "", r.TotalSeconds)
	return err
}
