package mpspdz_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
)

// Converts the shares of one party for MP-SPDZ's online phase.
func ExampleExport() {
	report, err := mpspdz.Export(context.Background(), []string{"shares-p0"}, "Player-Data", mpspdz.ExportOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Files {
		fmt.Println(f)
	}
}
