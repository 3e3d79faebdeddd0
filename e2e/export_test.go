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
	It("leaves files of every party that a reader of its own accepts", func() {
		for kind, stem := range map[string]string{"scalar": "Triples-p", "bit": "Bits-p", "matrix": "Matrix-3x2x1"} {
			out := filepath.Join(GinkgoT().TempDir(), kind)
			args := []string{"demo", "--params", "insecure-8", "--kind", kind, "--export", "mp-spdz", "--out", out, "--json"}
			if kind == "matrix" {
				args = append(args, "--dim", "3x2x1")
			} else {
				args = append(args, "--count", "101")
			}
			session := run(2*time.Minute, args...)
			Expect(session).To(gexec.Exit(0))
			var r struct {
				Tuples int64
				Export []struct {
					Party int
					Files []struct{ Records, Usable int64 }
				}
			}
			Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
			Expect(r.Export).To(HaveLen(3))

			var names []string
			Expect(filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					names = append(names, d.Name())
				}
				return err
			})).To(Succeed())
			Expect(names).To(ConsistOf("Params-Data", "Player-MAC-Keys-p-P0", "Player-MAC-Keys-p-P1", "Player-MAC-Keys-p-P2",
				stem+"-P0", stem+"-P1", stem+"-P2"))

			text, err := exec.Command("python3", "-B", filepath.Join("..", "clients", "python", "tools", "read_mpspdz.py"), "--json", out).Output()
			Expect(err).NotTo(HaveOccurred(), string(text))
			var read struct {
				OK    bool
				Kinds []struct{ Records, Usable int64 }
			}
			Expect(json.Unmarshal(text, &read)).To(Succeed())
			Expect(read.OK).To(BeTrue())
			Expect(read.Kinds).To(HaveLen(1))
			Expect(read.Kinds[0].Records).To(Equal(r.Tuples))
			for _, e := range r.Export {
				Expect(e.Files).To(HaveLen(1))
				Expect(e.Files[0].Records).To(Equal(r.Tuples))
				Expect(e.Files[0].Usable).To(Equal(read.Kinds[0].Usable))
			}
		}
	})
})
