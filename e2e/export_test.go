package e2e

import (
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("the export to MP-SPDZ", func() {
	It("writes files of every party that an independent reader accepts", func() {
		for stem, more := range map[string][]string{
			"":             {"--count", "10"}, // every kind
			"Bits-p":       {"--count", "101", "--kind", "bit"},
			"Matrix-3x2x1": {"--kind", "matrix", "--dim", "3x2x1"},
		} {
			out := filepath.Join(GinkgoT().TempDir(), "out")
			session := run(2*time.Minute, append([]string{"demo", "--params", "insecure-8", "--export", "mp-spdz", "--out", out, "--json"}, more...)...)
			Expect(session).To(gexec.Exit(0))
			type counts struct{ Records, Usable int64 }
			var r struct {
				Tuples int64
				Export []struct{ Files []counts }
			}
			Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
			Expect(r.Export).To(HaveLen(3))

			wanted := []string{"Params-Data"}
			kinds := []string{stem}
			if stem == "" {
				kinds = []string{"Triples-p", "Squares-p", "Bits-p", "Inverses-p", "Inputs-p"}
			}
			for _, party := range []string{"-P0", "-P1", "-P2"} {
				wanted = append(wanted, "Player-MAC-Keys-p"+party)
				for _, kind := range kinds {
					if kind != "Inputs-p" {
						wanted = append(wanted, kind+party)
						continue
					}
					for _, owner := range []string{"-0", "-1", "-2"} {
						wanted = append(wanted, kind+party+owner)
					}
				}
			}
			var names []string
			Expect(filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					names = append(names, d.Name())
				}
				return err
			})).To(Succeed())
			Expect(names).To(ConsistOf(wanted))

			text, err := exec.Command("python3", "-B", filepath.Join("..", "clients", "python", "tools", "read_mpspdz.py"), "--json", out).Output()
			Expect(err).NotTo(HaveOccurred(), string(text))
			var read struct {
				OK    bool
				Kinds []counts
			}
			Expect(json.Unmarshal(text, &read)).To(Succeed())
			Expect(read.OK).To(BeTrue())
			var records int64
			for _, k := range read.Kinds {
				records += k.Records
			}
			Expect(records).To(Equal(r.Tuples))
			for _, e := range r.Export {
				Expect(e.Files).To(HaveLen(len(read.Kinds)))
				for _, f := range e.Files {
					Expect(read.Kinds).To(ContainElement(f)) // the same number of usable tuples
				}
			}
		}
	})
})
